#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs guard_pages over all image sizes and instruction sets, and prints a table of what ran and what failed.

usage: tests/bench/guard_sweep.py [--program build/release/tests/guard_pages]… [--results FILE] [--table] [WORD=LIST…]

Each --program may be built with another version of oneDNN. A piece is one program, one instruction set and one image size. Its
result is a line of FILE (default: build/guard_sweep.jsonl), so an interrupted sweep continues where it stopped. WORD=LIST is
passed on (isa=… and sizes=… choose the pieces); the defaults below take every convolution of every model in six widths, with
one image and one thread. The status is 1 if a piece has a fault, an error, or runs nothing.
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEFAULTS = {"isa": "AVX2,AVX,SSE41", "sizes": "32,48,31,8,16,40,64,96,128,224,256", "widths": "1,0.5,0.25,0.125,0.0625,0.3",
            "batches": "1", "threads": "1", "reference": "2e7"}
SUMMARY = re.compile(r"^oneDNN (\S+), (.+): (\d+) runs in (\d+) s, (\d+) left out, (\d+) faults$", re.MULTILINE)


def run(program, isa, size, words):
    command = [str(program), f"isa={isa}", f"sizes={size}", "convolutions",
               *(f"{name}={words[name]}" for name in words if name not in ("isa", "sizes"))]
    done = subprocess.run(command, capture_output=True, text=True)
    found = SUMMARY.search(done.stdout)
    if not found:
        sys.exit(f"guard_sweep.py: {' '.join(command)} ended with status {done.returncode}: {done.stderr.strip()}")
    onednn, named, runs, seconds, left_out, faults = found.groups()
    return {"onednn": onednn, "isa": named, "runs": int(runs), "seconds": int(seconds), "left_out": int(left_out),
            "faults": int(faults), "lines": [line for line in done.stdout.splitlines() if line.startswith("FAULT")]}


def table(pieces):
    rows = {}
    for piece in pieces:
        row = rows.setdefault((piece["onednn"], piece["isa"]), {"sizes": [], "runs": 0, "left_out": 0, "faults": 0})
        row["sizes"].append(piece["size"])
        for name in ("runs", "left_out", "faults"):
            row[name] += piece[name]
    lines = ["| oneDNN | instructions | image sizes | runs | left out | faults |", "|---|---|---|---|---|---|"]
    for (onednn, isa), row in rows.items():
        sizes = ", ".join(str(size) for size in sorted(row["sizes"], key=int))
        lines.append(f"| {onednn} | {isa} | {sizes} | {row['runs']:,} | {row['left_out']:,} | {row['faults']} |")
    return "\n".join(lines + [line for piece in pieces for line in piece["lines"]])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", action="append", type=pathlib.Path, default=[], help="default: that of build/release")
    parser.add_argument("--results", type=pathlib.Path, default=ROOT / "build/guard_sweep.jsonl")
    parser.add_argument("--table", action="store_true", help="run nothing; the table of what is there")
    parser.add_argument("words", nargs="*", metavar="WORD=LIST")
    options = parser.parse_args()
    words = dict(DEFAULTS)
    for word in options.words:
        name, equals, value = word.partition("=")
        if not equals or name not in DEFAULTS | {"models": ""}:
            parser.error(f"{word}: there are {', '.join(DEFAULTS)} and models")
        words[name] = value
    pieces = []
    if options.results.exists():
        pieces = [json.loads(line) for line in options.results.read_text().splitlines()]
    done = {(piece["program"], piece["asked"], piece["size"], piece["words"]) for piece in pieces}
    rest = " ".join(f"{name}={words[name]}" for name in sorted(words) if name not in ("isa", "sizes"))
    for program in options.program or [ROOT / "build/release/tests/guard_pages"]:
        for isa in words["isa"].split(","):
            for size in words["sizes"].split(","):
                key = (str(program.resolve()), isa, size, rest)
                if options.table or key in done:
                    continue
                piece = dict(zip(("program", "asked", "size", "words"), key)) | run(program, isa, size, words)
                pieces.append(piece)
                with open(options.results, "a") as out:
                    out.write(json.dumps(piece) + "\n")
                print(f"oneDNN {piece['onednn']}, {piece['isa']}, {size} pixels: {piece['runs']} runs, {piece['faults']} faults, "
                      f"{piece['seconds']} s", flush=True)
    print(table(pieces))
    return 1 if not pieces or any(piece["faults"] or not piece["runs"] for piece in pieces) else 0


if __name__ == "__main__":
    sys.exit(main())
