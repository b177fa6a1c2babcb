#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts the tests of one or several ctest runs from their JUnit files, and ends with the line that CI reads.

A GoogleTest program that runs as one entry of ctest counts with each of its tests: GoogleTest's own summary is in the
entry's output. Printed are the ten slowest entries, how many tests were skipped for which reason, what the first failed entries said
and, alone on the last line, `N passed, N failed, N skipped`. The status is 1 where a test failed, none ran, or a file is missing.

usage: tests/tally.py FILE.xml …
"""
import collections
import pathlib
import re
import sys
import xml.etree.ElementTree

# GoogleTest's summary. A test program that starts others may print theirs as well: its own comes last.
_PASSED = re.compile(r"^\[  PASSED  \] (\d+) tests?\.$", re.MULTILINE)
_FAILED = re.compile(r"^\[  FAILED  \] (\d+) tests?, listed below:$", re.MULTILINE)
_SKIPPED = re.compile(r"^\[  SKIPPED \] (\d+) tests?, listed below:$", re.MULTILINE)
# Why a test of GoogleTest was skipped, which another rank may interrupt, and what a script says that ends with status 77.
_REASON = re.compile(r"^\S+:\d+: Skipped\n(?:\[.*\n)*(.+)|^\s*(?:[\w.]+: )?skipped: (.+)", re.MULTILINE)

# Where GoogleTest, unittest or a shell's test begins to say what was wrong.
_FAILURE = re.compile(r"^(\S+:\d+: Failure|(FAIL|ERROR): .*|FAILED.*)$", re.MULTILINE)
_FAILURES, _LINES = 4, 14


def last(pattern, text):
    found = pattern.findall(text)
    return int(found[-1]) if found else 0


def counts_of(case):
    """Passed, failed and skipped tests of one entry."""
    status, text = case.get("status"), "".join(case.itertext())
    passed, failed, skipped = last(_PASSED, text), last(_FAILED, text), last(_SKIPPED, text)
    if status == "run" and case.find("skipped") is None and case.find("failure") is None:
        return (passed, 0, skipped) if passed + skipped else (1, 0, 0)
    if status == "fail" or case.find("failure") is not None:
        return passed, max(failed, 1), skipped  # a program that crashed has no summary
    return 0, 0, max(skipped, 1)


def reasons_of(case, skipped):
    """Why the tests of an entry were skipped: as many reasons as tests."""
    reasons = [(a or b).strip() for a, b in _REASON.findall("".join(case.itertext()))][:skipped]
    return reasons + ["no reason given"] * (skipped - len(reasons))


def failure_of(case):
    """The first lines of what an entry said was wrong, or its last lines."""
    text = "\n".join(case.itertext()).strip()
    found = _FAILURE.search(text)
    lines = text[found.start() if found else 0:].splitlines()
    return "\n".join(lines[:_LINES] if found else lines[-_LINES:])


def main():
    totals, slowest, missing, reasons, failures = [0, 0, 0], [], [], collections.Counter(), []
    for file in map(pathlib.Path, sys.argv[1:]):
        if not file.is_file():
            missing.append(file)
            continue
        for case in xml.etree.ElementTree.parse(file).iter("testcase"):
            counts = counts_of(case)
            totals = [total + count for total, count in zip(totals, counts)]
            reasons.update(reasons_of(case, counts[2]))
            if counts[1]:
                failures.append(f"{file.parent.name}  {case.get('name')}\n{failure_of(case)}")
            slowest.append((float(case.get("time", 0)), file.parent.name, case.get("name")))
    print("\nThe ten slowest, in seconds:")
    for seconds, preset, name in sorted(slowest, reverse=True)[:10]:
        print(f"{seconds:8.1f}  {preset}  {name}")
    if reasons:
        print("Skipped:")
    for reason, count in reasons.most_common():
        print(f"{count:8}  {reason}")
    for failure in failures[:_FAILURES]:
        print(f"Failed: {failure}\n")
    for file in missing:
        print(f"tally.py: {file} is missing: its tests did not run", file=sys.stderr)
    totals[1] += len(missing)
    print("{} passed, {} failed, {} skipped".format(*totals))
    sys.exit(totals[1] > 0 or totals[0] == 0)


if __name__ == "__main__":
    main()
