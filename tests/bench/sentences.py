#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes every distinct sentence that reports, predictions and comparisons print about generated jobs, for review.

usage: sentences.py PACELINE [-o FILE] [--runs 1] [--ranks 2,4,16] [--iterations 50,200] [RUN…]

The jobs are those of judge/judge_reports.py (every kind of noise and fault) and the tables those of judge/judge_tables.py.
Runs that are given are reported on as well. Sentences that differ only in numbers, names of hosts, paths and names of runs
count as one. The file has one line for each: how often it was printed, the sentence with # for numbers, and one example.
"""
import argparse
import json
import pathlib
import random
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "judge"))
import judge_reports as jobs  # noqa: E402
import judge_tables as tables  # noqa: E402


def output_of(command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"sentences.py: {' '.join(map(str, command))}: status {done.returncode}: {done.stderr}")
    return done.stdout


def sentences_of(text):
    """Splits at full stops that a capital letter or the end follows."""
    return [part.strip() for part in re.split(r"(?<=[.:])\s+(?=[A-Z“\"])", " ".join(text.split())) if part.strip()]


def pattern_of(sentence):
    sentence = re.sub(r"/\S+", "PATH", sentence)
    sentence = re.sub(r"\bnode\d+\b|\bjob\d?\b", "NAME", sentence)
    return re.sub(r"[−+]?\d+(?:[.,]\d+)*", "#", sentence)


class Sentences:
    def __init__(self, paceline):
        self.paceline, self.found = paceline, {}

    def add(self, text):
        for sentence in sentences_of(text):
            entry = self.found.setdefault(pattern_of(sentence), [0, sentence])
            entry[0] += 1

    def report(self, *runs):
        report = json.loads(output_of([self.paceline, "report", "--format", "json", *runs]))
        for text in (report.get("verdict") or []) if isinstance(report.get("verdict"), list) else [str(report.get("verdict"))]:
            self.add(text)
        for finding in report["findings"]:
            self.add(finding["text"])
        for run in report["runs"]:
            for note in run.get("what_if", {}).get("notes", []):
                self.add(note)

    def without_tables(self, text):
        """Text output without its tables, whose rows are indented by two blanks and have columns."""
        for paragraph in re.split(r"\n\s*\n|\n(?=\s+[·!] )", text):
            lines = [line for line in paragraph.splitlines() if not re.search(r"\S {2,}\S", line)]
            self.add(" ".join(line.strip(" ·!") for line in lines))

    def whatif(self, run):
        self.without_tables(output_of([self.paceline, "whatif", run]))

    def compare(self, base, new):
        self.without_tables(output_of([self.paceline, "compare", base, new]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("paceline")
    parser.add_argument("run", nargs="*")
    parser.add_argument("-o", "--output")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--ranks", default="2,4,16")
    parser.add_argument("--iterations", default="50,200")
    options = parser.parse_intermixed_args()
    said = Sentences(options.paceline)
    for run in options.run:
        said.report(run)
        said.whatif(run)
    for kind in jobs.SOUND + jobs.FAULTS:
        for ranks in map(int, options.ranks.split(",")):
            for iterations in map(int, options.iterations.split(",")):
                for number in range(options.runs):
                    draw = random.Random(f"{kind} {ranks} {iterations} {number}")
                    random.seed(f"{kind} {ranks} {iterations} {number}")
                    with tempfile.TemporaryDirectory() as temporary:
                        runs = [pathlib.Path(temporary) / f"job{i}" for i in (1, 2)]
                        for run, of in zip(runs, ["normal", kind]):
                            run.mkdir()
                            jobs.write_job(run, of, jobs.work_of(of, ranks, iterations, draw), draw)
                        said.report(runs[1])
                        said.whatif(runs[1])
                        said.compare(*runs)
    for name, law in tables.LAWS.items():
        for number in range(5 * options.runs):
            with tempfile.TemporaryDirectory() as temporary:
                path = pathlib.Path(temporary) / "runs.csv"
                path.write_text(tables.table_of(law, random.Random(f"{name} {number}")))
                said.report(path)
    lines = [f"{count}\t{pattern}\t{example}\n" for pattern, (count, example) in sorted(said.found.items())]
    if options.output:
        pathlib.Path(options.output).write_text("".join(lines))
        print(f"{len(lines)} sentences in {options.output}")
    else:
        sys.stdout.writelines(lines)
    return 0


if __name__ == "__main__":
    sys.exit(main())
