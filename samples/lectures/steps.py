#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints a line for each run of `paceline report --format json`: how fast its steps are, and what they wait for.

usage: steps.py REPORT.json
All figures of a step are means over the ranks and over all steps, the first ones included, so that they can be compared:
communication is a part of the step beside it. It is what the step waits for; what a second thread sends while the step
computes is hidden: its share of all communication. The report itself has medians after the warm-up.
"""
import json
import pathlib
import sys


def row(run):
    iterations, config = run["iterations"], run["config"]
    parts = [part for part in run["breakdown"]["rows"] if part["in_iterations"]]  # means over the ranks
    step = sum(part["ns"] for part in parts) / iterations["count"]
    exposed = sum(part["ns"] for part in parts if part["phase"] == "communication") / iterations["count"]
    overlaps = [rank["overlap"] for rank in run["per_rank"] if "overlap" in rank]
    all_ns = sum(overlap["communication_ns"] for overlap in overlaps)
    hidden_ns = sum(overlap["hidden_ns"] for overlap in overlaps)
    alone = run["ranks"] == 1
    return [pathlib.PurePath(run["path"]).name, str(run["ranks"]), str(len(run["hosts"])), str(config["batch_per_rank"]),
            f'{config["images_per_iteration"] / step * 1e9:.1f}', f"{step / 1e6:.1f}",
            "–" if alone else f"{exposed / 1e6:.1f}",
            "–" if alone else f"{100 * exposed / step:.1f} %",
            "–" if all_ns == 0 or alone else f"{100 * hidden_ns / all_ns:.0f} %"]


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        report = json.load(file)
    header = ["run", "ranks", "hosts", "batch", "images/s", "step ms", "communication ms", "of a step", "hidden"]
    rows = [header] + [row(run) for run in report["runs"]]
    widths = [max(len(line[column]) for line in rows) for column in range(len(header))]
    print()
    for line in rows:
        first, *rest = [cell.ljust(width) if column == 0 else cell.rjust(width)
                        for column, (cell, width) in enumerate(zip(line, widths))]
        print("  " + "  ".join([first, *rest]))


if __name__ == "__main__":
    main()
