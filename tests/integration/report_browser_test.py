#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: report_browser_test.py PACELINE RUN SYNTHETIC_RANKS

Opens the HTML report of a run in a browser without a window and moves the mouse over its charts: a drag enlarges a range, Shift + drag
moves it, a double click shows everything again, and the pointer over an iteration shows its figures. RUN has at least 8 iterations on
at least 2 ranks. The PDF of it, and of 64 ranks that SYNTHETIC_RANKS makes, has no half-empty pages, and the iterations are on its
first page. Exit status 77: there is no chromium.
"""
import base64
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile


class Browser:
    """A page in chromium, which takes commands and sends answers over pipes (Chrome DevTools Protocol)."""

    def __init__(self, program, page, profile):
        read_commands, self.commands = os.pipe()
        self.answers, write_answers = os.pipe()
        command = (f"exec {program} --headless --no-sandbox --disable-gpu --hide-scrollbars --window-size=1200,1000 "
                   f"--user-data-dir={profile} --remote-debugging-pipe about:blank 3<&{read_commands} 4>&{write_answers}")
        self.process = subprocess.Popen(["/bin/sh", "-c", command], pass_fds=(read_commands, write_answers),
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(read_commands)
        os.close(write_answers)
        self.buffer, self.number, self.session = b"", 0, None
        target = next(t for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
        self.call("Page.navigate", url=page.as_uri())
        while self.value("document.readyState") != "complete":
            pass

    def call(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.commands, json.dumps(message).encode() + b"\0")
        while True:
            while b"\0" not in self.buffer:
                more = os.read(self.answers, 1 << 16)
                assert more, "the browser ended"
                self.buffer += more
            text, self.buffer = self.buffer.split(b"\0", 1)
            answer = json.loads(text)
            if answer.get("id") == self.number:
                assert "error" not in answer, f"{method}: {answer}"
                return answer["result"]

    def value(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in result, f"{expression}: {result}"
        return result["result"].get("value")

    def mouse(self, kind, x, y, **more):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def drag(self, begin, end, modifiers=0):
        held = {"button": "left", "modifiers": modifiers}
        self.mouse("mousePressed", *begin, clickCount=1, **held)
        for step in range(1, 5):
            self.mouse("mouseMoved", *[a + (b - a) * step / 4 for a, b in zip(begin, end)], buttons=1, **held)
        self.mouse("mouseReleased", *end, clickCount=1, **held)

    def double_click(self, x, y):
        for count in (1, 2):
            self.mouse("mousePressed", x, y, button="left", clickCount=count)
            self.mouse("mouseReleased", x, y, button="left", clickCount=count)

    def end(self):
        self.session = None
        self.call("Browser.close")  # its processes have written the profile when it ends
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class ChartOnPage:
    def __init__(self, browser, kind):
        self.browser = browser
        number = browser.value(f"charts.findIndex(one => one.kind === '{kind}')")
        assert number >= 0, f"the report has no chart {kind}"
        self.canvas = f"document.getElementById('chart{number}')"
        browser.value(f"{self.canvas}.scrollIntoView({{ block: 'center', behavior: 'instant' }})")
        box = browser.value(f"(edge => [edge.left, edge.top])({self.canvas}.getBoundingClientRect())")
        area = self.of("chartArea")
        self.left, self.right = box[0] + area["left"], box[0] + area["right"]
        self.top, self.bottom = box[1] + area["top"], box[1] + area["bottom"]

    def of(self, what):
        return self.browser.value(f"(chart => chart.{what})(Chart.getChart({self.canvas}))")

    def range(self, axis="x"):
        return self.of(f"scales.{axis}.min"), self.of(f"scales.{axis}.max")

    def at(self, x, y=0.5):
        return self.left + x * (self.right - self.left), self.top + y * (self.bottom - self.top)


def check_iterations(browser):
    chart = ChartOnPage(browser, "iterations")
    first, last = chart.range()
    length = last - first
    assert length >= 7, f"{first} to {last}: too few iterations"
    browser.drag(chart.at(0.25), chart.at(0.6))
    begin, end = chart.range()
    assert abs(begin - first - 0.25 * length) <= 1.5 and abs(end - first - 0.6 * length) <= 1.5, f"enlarged to {begin}, {end}"
    browser.drag(chart.at(0.8), chart.at(0.3), modifiers=8)  # Shift
    moved = chart.range()
    assert moved[0] > begin and moved[1] - moved[0] == end - begin, f"{begin}, {end} moved to {moved}"
    browser.drag(chart.at(0.1), chart.at(5), modifiers=8)
    assert chart.range()[0] == first, "it does not move beyond the first iteration"
    browser.double_click(*chart.at(0.5))
    assert chart.range() == (first, last), "a double click shows everything"
    browser.mouse("mouseMoved", *chart.at(0.5))
    shown = chart.of("tooltip.title")
    assert shown and "teration" in " ".join(shown) and chart.of("tooltip.opacity") == 1, f"the pointer shows {shown}"


def check_heat_map(browser):
    chart = ChartOnPage(browser, "heat")
    before = chart.range("x"), chart.range("y")
    browser.drag(chart.at(0.2, 0.1), chart.at(0.7, 0.4))
    after = chart.range("x"), chart.range("y")
    for (low, high), (least, most) in zip(after, before):
        assert least <= low < high <= most, f"{before} became {after}"
    assert after[0][1] - after[0][0] < before[0][1] - before[0][0], "a range of iterations"


# The pages that the content fills, and those that are printed: a half-empty page would be one too many.
def check_print(browser):
    for paper in ((8.27, 11.69), (8.5, 11)):  # A4 and Letter, of which 14 mm on each side are margins
        pdf = base64.b64decode(browser.call("Page.printToPDF", printBackground=True, paperWidth=paper[0], paperHeight=paper[1])["data"])
        pages = len(re.findall(rb"/Type\s*/Page\b", pdf))
        width, height = (round((inches - 28 / 25.4) * 96) for inches in paper)
        browser.call("Emulation.setEmulatedMedia", media="print")
        browser.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        filled = browser.value("document.body.getBoundingClientRect().height") / height
        first_page = browser.value("document.getElementById(`chart${charts.findIndex(one => one.kind === 'iterations')}`)"
                                   ".getBoundingClientRect().bottom + scrollY") / height
        print(f"{paper[0]} x {paper[1]} inches: {pages} pages, of which the content fills {filled:.2f}")
        assert 1 <= pages <= 8, f"{pages} printed pages"
        assert pages - filled < 1.25, f"{pages} printed pages for {filled:.2f} of content"
        assert first_page <= 1, f"the chart of the iterations ends at {first_page:.2f} of the first page"
        rows = browser.value("new Set([...document.querySelectorAll('.card')].map(one => one.getBoundingClientRect().top)).size")
        assert rows == 1, f"the main figures take {rows} rows, and the picture below them needs the room"
        browser.call("Emulation.setEmulatedMedia", media="")
        browser.call("Emulation.clearDeviceMetricsOverride")


def main():
    paceline, run = sys.argv[1], sys.argv[2]
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if program is None:
        print("skipped: no chromium")
        sys.exit(77)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        page, page_of_64 = pathlib.Path(folder) / "report.html", pathlib.Path(folder) / "report64.html"
        subprocess.run([sys.argv[3], f"{folder}/ranks", "64", "40", "4", "1", "37"], check=True)
        for path, of in ((page, run), (page_of_64, f"{folder}/ranks")):
            subprocess.run([paceline, "report", "-o", path, of], check=True, stderr=subprocess.DEVNULL)
        if b'"kind":"iterations"' not in page.read_bytes():
            print("skipped: Chart.js was not there at build time (libjs-chart.js)")
            sys.exit(77)
        browser = Browser(program, page, f"{folder}/profile")
        try:
            check_iterations(browser)
            check_heat_map(browser)
            check_print(browser)
        finally:
            browser.end()
        browser = Browser(program, page_of_64, f"{folder}/profile64")
        try:
            check_print(browser)
        finally:
            browser.end()
    print("the charts of the report answer the mouse")


if __name__ == "__main__":
    main()
