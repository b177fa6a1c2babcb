#!/usr/bin/env python3
"""usage: hidden_names.py SOURCES
In a unity build a function of one file's unnamed namespace hides the function of the same name that a header declares,
in all files of the unit, and may silently be called in its place. None does: one line for each that would, status 1."""
import collections
import pathlib
import re
import sys

# Folders whose files are compiled together (those of profiler/inject are not).
LIBRARIES = [["analysis"], ["viewer"], ["profiler/format"], ["profiler/launch"], ["profiler/record"],
             ["trainer/core", "trainer/nn", "trainer/backend", "trainer/optim"], ["trainer/comm"], ["trainer/cli", "trainer/run", "trainer/updaters", "trainer/data"]]
FUNCTION = re.compile(r"^(?!\s|#|//|return|using|typedef|struct|class|enum|namespace|friend|\}|TEST)"
                      r"[\w:<>,\*& ]+?[ \*&](\w+)\(", re.M)
UNNAMED = re.compile(r"^namespace \{\n(.*?)^\}  // namespace$", re.M | re.S)

sources = pathlib.Path(sys.argv[1])
functions, hidden = 0, []
for folders in LIBRARIES:
    files = [file for folder in folders for file in sorted((sources / folder).rglob("*"))]
    declared = collections.defaultdict(set)
    for file in files:
        if file.suffix == ".h":
            for name in FUNCTION.findall(file.read_text()):
                declared[name].add(file.relative_to(sources))
    for file in files:
        if file.suffix == ".cpp":
            for body in UNNAMED.findall(file.read_text()):
                for name in FUNCTION.findall(body):
                    functions += 1
                    for header in declared[name]:
                        hidden.append(f"{file.relative_to(sources)}: {name}() hides that of {header}: rename it")
assert functions > 300, f"only {functions} functions were found: does the pattern still fit the code?"
print("\n".join(hidden))
sys.exit(1 if hidden else 0)
