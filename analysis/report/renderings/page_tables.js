// Tables of the report: a click on a column's name sorts, a field above a long table filters. Unfolds what a link leads
// to. Paper shows what is unfolded on the screen.
(() => {
  const scale = { ns: 1e-9, "µs": 1e-6, ms: 1e-3, s: 1, min: 60, h: 3600, B: 1, kB: 1e3, MB: 1e6, GB: 1e9, TB: 1e12,
    "B/s": 1, "kB/s": 1e3, "MB/s": 1e6, "GB/s": 1e9, "images/s": 1, "%": 1 };
  // The number at the start of a cell in the unit's base; NaN for text.
  const value = text => {
    const found = text.replace(/−/g, "-").match(/^([+-]?[\d,]*\.?\d+(?:e[+-]?\d+)?)\s*([^\s\d([]*)/);
    return found ? parseFloat(found[1].replace(/,/g, "")) * (scale[found[2]] || 1) : NaN;
  };
  const compare = (a, b) => {
    const x = value(a), y = value(b);
    if (isNaN(x) && isNaN(y)) return a.localeCompare(b, "en", { numeric: true });
    return isNaN(x) || isNaN(y) ? isNaN(y) - isNaN(x) : x - y;  // text such as "–" is less than any number
  };

  function sortable(table) {
    const body = table.tBodies[0], heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(head.firstElementChild);  // the name
      head.prepend(button);
      button.addEventListener("click", () => {
        const again = head.hasAttribute("aria-sort") && head.dataset.first === "true";
        // The first click shows the largest number, or the first word.
        const text = row => row.cells[column].textContent;
        const words = [...body.rows].every(row => isNaN(value(text(row))));
        const rows = [...body.rows].sort((a, b) => compare(text(a), text(b)));
        const descending = words === again;
        if (descending) rows.reverse();
        heads.forEach(other => { other.removeAttribute("aria-sort"); delete other.dataset.first; });
        head.setAttribute("aria-sort", descending ? "descending" : "ascending");
        if (!again) head.dataset.first = "true";
        body.append(...rows);
      });
    });
  }

  function filterable(table) {
    const field = document.createElement("input"), shown = document.createElement("span");
    field.type = "search"; field.placeholder = "Filter rows"; field.className = "filter";
    field.setAttribute("aria-label", "Filter the rows of this table");
    shown.className = "shown"; shown.setAttribute("role", "status");
    const rows = [...table.tBodies[0].rows];
    field.addEventListener("input", () => {
      const words = field.value.toLowerCase().split(/\s+/).filter(word => word);
      let count = 0;
      for (const row of rows) {
        const text = [...row.cells].map(cell => cell.textContent.toLowerCase()).join(" ");
        row.hidden = !words.every(word => text.includes(word));
        if (!row.hidden) ++count;
      }
      shown.textContent = words.length ? count + " of " + rows.length + " rows" : "";
    });
    table.closest(".scroll").before(field, shown);
  }

  for (const table of document.querySelectorAll("details.table table")) {
    const rows = table.tBodies[0].rows.length;
    if (rows > 1) sortable(table);
    if (rows > 8) filterable(table);
  }

  // The desktop opens these addresses with paceline-view.
  for (const link of document.querySelectorAll("a.view")) { link.setAttribute("href", encodeURI(link.dataset.address)); link.hidden = false; }

  // A link leads into a folded part: unfold it.
  const unfold = () => {
    const id = decodeURIComponent(location.hash.slice(1)), target = id && document.getElementById(id);
    for (let at = target; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
    if (target) { target.scrollIntoView(); target.focus({ preventScroll: true }); }
  };
  addEventListener("hashchange", unfold);
  unfold();
})();
