#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: hidden_names.py SOURCES
What a unity build would change, because it compiles the unnamed namespaces of several files as one. A function there hides
the function of the same name that a header declares, in all files of the unit, and may silently be called in its place.
And two files must not define the same variable, class or function there. Prints one line for each such name; status 1."""
import collections
import pathlib
import re
import sys

# Folders whose files are compiled together (those of profiler/inject are not).
LIBRARIES = [["analysis"], ["viewer"], ["profiler/format"], ["profiler/launch"], ["profiler/record"],
             ["trainer/core", "trainer/nn", "trainer/backend", "trainer/optim"], ["trainer/comm"], ["trainer/cli", "trainer/run", "trainer/updaters", "trainer/data"]]
# Folders of these whose files are a library of their own.
SEPARATE = ["analysis/cli", "analysis/mpi", "analysis/python", "trainer/backend", "trainer/comm/gpu", "trainer/core"]
FUNCTION = re.compile(r"^(?!\s|#|//|return|using|typedef|struct|class|enum|namespace|friend|\}|TEST)"
                      r"[\w:<>,\*& ]+?[ \*&](\w+)\(", re.M)
# What an unnamed namespace defines: a class, a variable, a function with its parameters.
START = r"^(?!\s|#|//|return|using|typedef|template|friend|\}|namespace|extern|class \w+;|struct \w+;)"
DEFINED = re.compile(START + r"(?:enum class|struct|class|union|enum) (\w+)[^;(=]*\{|"
                     + START + r"[\w:<>,*& ]*?[ *&](\w+)(?:\[[^\]]*\])*(?: =|\{|;)|"
                     + START + r"[\w:<>,*& ]*?[ *&](\w+\([^;{]*\)) (?:const )?\{", re.M)
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
    defined = collections.defaultdict(set)
    for file in files:
        if file.suffix == ".cpp":
            for body in UNNAMED.findall(file.read_text()):
                for names in DEFINED.findall(body):
                    path = file.relative_to(sources).as_posix()
                    library = next((folder for folder in SEPARATE if path.startswith(folder + "/")), "")
                    defined[library, re.sub(r"\s+", " ", "".join(names))].add(path)
                for name in FUNCTION.findall(body):
                    functions += 1
                    for header in declared[name]:
                        hidden.append(f"{file.relative_to(sources)}: {name}() hides that of {header}: rename it")
    hidden += [f"{name}: defined in {' and '.join(sorted(where))}: rename one" for (_, name), where in sorted(defined.items())
               if len(where) > 1]
assert functions > 300, f"only {functions} functions were found: does the pattern still fit the code?"
print("\n".join(hidden))
sys.exit(1 if hidden else 0)
