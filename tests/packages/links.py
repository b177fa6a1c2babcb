#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: links.py FOLDER

Follows each link of the Markdown files below FOLDER: its file must be there, and its heading in that file. Links to other
servers are not followed.
"""
import pathlib
import re
import sys
import urllib.parse


def text_of(page):
    """Without code, in which brackets are not links and # is not a heading."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"`[^`\n]*`", lambda code: code[0] if "](" not in code[0] else "", text)


def anchors_of(page):
    """As GitHub makes them; a heading that is there again gets a number."""
    anchors = set()
    for heading in re.findall(r"^#+ (.*)$", text_of(page), flags=re.MULTILINE):
        anchor = base = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        number = 0
        while anchor in anchors:
            number += 1
            anchor = f"{base}-{number}"
        anchors.add(anchor)
    return anchors


folder = pathlib.Path(sys.argv[1]).resolve()
faults, links, pages = [], 0, sorted(folder.rglob("*.md"))
for page in pages:
    for target in re.findall(r"\]\(([^()\s]+)\)", text_of(page)):
        if re.match(r"[a-z]+:", target):
            continue
        links += 1
        path, _, anchor = urllib.parse.unquote(target).partition("#")
        file = (page.parent / path).resolve() if path else page
        if not file.exists() or not file.is_relative_to(folder):
            faults.append(f"{page.relative_to(folder)}: no file {target}")
        elif anchor and anchor not in anchors_of(file):
            faults.append(f"{page.relative_to(folder)}: no heading {target}")
print("\n".join(faults) or f"{links} links of {len(pages)} files lead somewhere")
sys.exit(1 if faults or not links else 0)
