#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: manual_test.py MANUAL PROGRAM…

Each option that a program or one of its commands prints with --help has to be in its man page, and bash has to complete it.
"""
import pathlib
import re
import subprocess
import sys

manual, programs = pathlib.Path(sys.argv[1]), sys.argv[2:]


def printed(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def completed(program, *words):
    """What bash completes the last word to."""
    script = f"""source {manual}/completions/{program}
COMP_WORDS=({' '.join(map(repr, words))}); COMP_CWORD={len(words) - 1}
_{program.replace('-', '_')}; printf '%s\\n' "${{COMPREPLY[@]}}" """
    return set(printed("bash", "-c", script).split())


def commands_of(text):
    part = re.search(r"^(?:Subcommands|Other commands).*:\n((?:  .*\n)+)", text, re.MULTILINE)
    return re.findall(r"^  ([a-z-]+)  ", part.group(1), re.MULTILINE) if part else []


def check(program, name, words, text):
    options = set()
    for line in re.findall(r"^  (-[^ {]+)", text, re.MULTILINE):
        options.update(line.split(","))
    assert options, name
    page = (manual / "man1" / f"{name}.1").read_text().replace("\\-", "-")
    in_page = set(re.findall(r"\\fB(-[^\\]+)\\fR", page))
    assert in_page == options, f"{name}: the man page and --help differ in {sorted(in_page ^ options)}"
    replies = completed(*([program] + [program] + words + ["-"]))
    assert replies == options, f"{name}: the completion and --help differ in {sorted(replies ^ options)}"
    return len(options)


checked = 0
for path in programs:
    program = pathlib.Path(path).name
    text = printed(path, "--help")
    for command in commands_of(text):
        assert command in completed(program, program, ""), f"{command} is not completed"
        if command not in ("train", "view"):
            checked += check(program, f"{program}-{command}", [command], printed(path, command, "--help"))
    if "--help TOPIC" in text:
        text = printed(path, "--help", "all")
    checked += check(program, program, [], text)

assert completed("paceline", "paceline", "query", "--format", "") == {"table", "csv", "tsv", "json"}
assert "bash" in completed("paceline", "paceline", "record", "-o", "run", "--", "bas")
print(f"{checked} options")
