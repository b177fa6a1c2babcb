#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Breaks executable lines one at a time and lists those that no test notices.

The lines are drawn with a fixed seed over the rooms of ROOMS, each line with the same chance. A mutant that does not
compile is replaced by the next line of the draw. All work happens in a private copy of the tree, so that nothing broken
can be committed. Finished mutants are kept in WORK/results.jsonl: an interrupted run goes on where it was.

usage: tests/mutation/mutate.py [--count 50] [--seed 12] [--work build/mutation] [--only ROOM] [--list] [--table]
"""
import argparse
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import time

import operators

ROOT = pathlib.Path(__file__).resolve().parents[2]

# A room: its files, and the test programs that are to notice. The first ones are the room's own unit tests; those after
# the bar are other unit tests that use the room. They run only where the first ones pass.
ROOMS = {
    "format": (["profiler/format/*"],
               ["test_profiler_format", "|", "test_analysis_importers", "test_profiler_inject", "test_profiler_record"]),
    "metrics": (["analysis/statistics/*", "analysis/phases/*", "analysis/device/*", "analysis/communication/*"], ["test_analysis_metrics", "test_analysis_messages", "|", "test_analysis_report"]),
    "scaling": (["analysis/scaling/*"], ["test_analysis_scaling", "|", "test_analysis_report"]),
    "comm": (["trainer/comm/*"],
             ["trainer_comm_test", "trainer_comm_mpi_test:8", "|", "trainer_data_parallel_test:4", "trainer_updaters_test:4"]),
    "updaters": (["trainer/updaters/" + name + ".*" for name in
                  ("updater", "main_rank", "overlap", "double_buffering", "parameter_server", "gradient_pass", "buckets",
                   "background", "sender")],
                 ["trainer_updater_parts_test", "trainer_updaters_test:4"]),
    "nn": (["trainer/nn/*"],
           ["trainer_network_test", "|", "trainer_cpu_model_test", "trainer_gradient_test", "trainer_pytorch_test",
            "trainer_updaters_test:4"]),
}
LEFT_OUT = set()
ENVIRONMENT = {"OMP_NUM_THREADS": "1", "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
               "OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_mpi_yield_when_idle": "1",
               "OMPI_MCA_btl_vader_single_copy_mechanism": "none", "OMPI_MCA_plm_rsh_agent": ""}


def lines_of(tree):
    """Every executable line: (room, file, number, mutants)."""
    found = []
    for room, (patterns, _) in ROOMS.items():
        files = sorted({path for pattern in patterns for path in tree.glob(pattern)
                        if path.suffix in (".h", ".cpp") and path.relative_to(tree).as_posix() not in LEFT_OUT})
        for path in files:
            lines = path.read_text().splitlines()
            code = operators.code_of(lines)
            for number, inside in enumerate(operators.in_functions(code)):
                mutants = operators.mutants_of(lines[number], code[number]) if inside else []
                if mutants:
                    found.append((room, str(path.relative_to(tree)), number + 1, mutants))
    return found


def draw(tree, seed):
    """All lines in the order of the draw, each with one of its mutants."""
    lines = lines_of(tree)
    random.Random(seed).shuffle(lines)
    for room, file, number, mutants in lines:
        operator, text = random.Random(f"{seed} {file} {number}").choice(mutants)
        yield {"room": room, "file": file, "line": number, "operator": operator, "text": text}


class Group:
    """A command with all its children: ended together when the time is up, or this program."""

    def __init__(self, command, limit, cwd, log):
        self.timed_out = False
        with open(log, "wb") as out:
            process = subprocess.Popen(command, cwd=cwd, stdout=out, stderr=subprocess.STDOUT, start_new_session=True,
                                       stdin=subprocess.DEVNULL, env=os.environ | ENVIRONMENT)
            try:
                self.status = process.wait(limit)
            except subprocess.TimeoutExpired:
                self.timed_out = True
                self.status = None
            finally:
                for ending in (signal.SIGTERM, signal.SIGKILL):
                    if process.poll() is None:
                        os.killpg(process.pid, ending)  # mpirun ends its ranks when it is asked to
                        try:
                            process.wait(10)
                        except subprocess.TimeoutExpired:
                            pass


class Tree:
    """The private copy, its build and its tests."""

    def __init__(self, work, flags, jobs):
        self.work, self.tree, self.build = work, work / "tree", work / "tree/build/mutation"
        self.flags, self.jobs = flags, jobs

    def copy(self):
        commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
        mark = self.work / "commit"
        if mark.exists():  # what was begun is finished with the same sources
            begun = mark.read_text().strip()
            self.repair(begun)
            return begun
        shutil.rmtree(self.work, ignore_errors=True)
        self.tree.mkdir(parents=True)
        archive = subprocess.Popen(["git", "archive", "HEAD"], cwd=ROOT, stdout=subprocess.PIPE)
        subprocess.run(["tar", "-x", "-C", self.tree], stdin=archive.stdout, check=True)
        if archive.wait() != 0:
            sys.exit("mutate.py: git archive failed")
        if (ROOT / "build/deps").exists():
            (self.tree / "build").mkdir()
            shutil.copytree(ROOT / "build/deps", self.tree / "build/deps", symlinks=True)
        mark.write_text(commit)
        return commit.strip()

    def repair(self, commit):
        """Restores a file that a killed run left broken. It gets a new time, so that it is compiled again."""
        for file in sorted({file for _, file, _, _ in lines_of(self.tree)}):
            whole = subprocess.run(["git", "show", f"{commit}:{file}"], cwd=ROOT, check=True, capture_output=True).stdout
            if (self.tree / file).read_bytes() != whole:
                (self.tree / file).write_bytes(whole)

    def configure(self):
        options = ["-DCMAKE_BUILD_TYPE=Release", f"-DCMAKE_CXX_FLAGS_RELEASE={self.flags}", "-DPACELINE_TESTS=ON",
                   "-DPACELINE_TRAINER=ON", "-DPACELINE_VIEWER=OFF"]
        done = Group(["cmake", "-S", ".", "-B", self.build, "-G", "Ninja", *options], 600, self.tree, self.work / "log")
        if done.status != 0:
            sys.exit((self.work / "log").read_text() + "mutate.py: the copy cannot be configured")

    def compile(self, programs):
        names = [name.partition(":")[0] for name in programs]
        return Group(["ninja", "-C", self.build, f"-j{self.jobs}", *names], 3600, self.tree, self.work / "log").status == 0

    def run(self, program, limit):
        """None where all its tests pass, else what failed; and the seconds it took."""
        name, _, ranks = program.partition(":")
        command = [self.build / "tests" / name, "--gtest_brief=1"]
        if ranks:
            command = ["mpirun", "--bind-to", "none", "-n", ranks, *command]
        else:
            command.append("--gtest_fail_fast")
        begun = time.monotonic()
        done = Group(command, limit, self.work, self.work / "log")
        seconds = time.monotonic() - begun
        if done.timed_out:
            return f"{name}: no end", seconds
        if done.status == 0:
            return None, seconds
        said = (self.work / "log").read_text(errors="replace").splitlines()
        failed = [line.split()[3].rstrip(",") for line in said if "[  FAILED  ]" in line and len(line.split()) > 3]
        return f"{name}: {failed[0] if failed else f'status {done.status}'}", seconds


class Baseline:
    """How long each program takes unbroken. A program is built and run the first time that it is needed."""

    def __init__(self, tree):
        self.tree, self.file = tree, tree.work / "baseline.json"
        self.seconds = json.loads(self.file.read_text()) if self.file.exists() else {}

    def take(self, programs):
        new = [program for program in programs if program not in self.seconds]
        if new and not self.tree.compile(new):
            sys.exit((self.tree.work / "log").read_text()[-4000:] + "mutate.py: the unbroken copy does not compile")
        for program in new:
            failed, seconds = self.tree.run(program, 1200)
            if failed:
                sys.exit(f"mutate.py: the unbroken copy fails: {failed}; see {self.tree.work / 'log'}")
            print(f"unbroken: {program} passes in {seconds:.1f} s", flush=True)
            self.seconds[program] = seconds
            self.file.write_text(json.dumps(self.seconds))


def try_out(tree, mutant, baseline):
    """Adds `verdict` and `by` to a mutant; the file is whole again afterwards."""
    path = tree.tree / mutant["file"]
    whole = path.read_text()
    lines = whole.splitlines(keepends=True)
    mutant["was"] = lines[mutant["line"] - 1].rstrip("\n")
    lines[mutant["line"] - 1] = mutant["text"] + "\n"
    mutant["verdict"], mutant["by"] = "survived", ""
    for stage, programs in enumerate(" ".join(ROOMS[mutant["room"]][1]).split("|")):
        baseline.take(programs.split())
        try:
            path.write_text("".join(lines))
            if not tree.compile(programs.split()):
                mutant["verdict"], mutant["by"] = ("killed", "the compiler") if stage else ("not compiled", "")
                return
            for program in programs.split():
                failed, _ = tree.run(program, 60 + 10 * baseline.seconds[program])
                if failed:
                    mutant["verdict"], mutant["by"] = "killed", failed
                    return
        finally:
            path.write_text(whole)


def table(results):
    cells = [["line", "operator", "verdict", "by"]]
    cells += [[f"{m['file']}:{m['line']}", m["operator"], m["verdict"], m["by"]] for m in results]
    rows = ["| " + " | ".join(row) + " |" for row in cells]
    rows.insert(1, "|---|---|---|---|")
    counts = {v: sum(m["verdict"] == v for m in results) for v in ("killed", "survived", "not compiled")}
    rows += ["", ", ".join(f"{number} {verdict}" for verdict, number in counts.items())]
    for m in results:
        if m["verdict"] == "survived":
            rows += ["", f"{m['file']}:{m['line']}", f"-{m['was']}", f"+{m['text']}"]
    return "\n".join(rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=50, help="mutants that compile (50)")
    parser.add_argument("--seed", type=int, default=12, help="of the draw (12)")
    parser.add_argument("--work", type=pathlib.Path, default=ROOT / "build/mutation", help="copy, build and results")
    parser.add_argument("--only", choices=ROOMS, help="one room of the draw")
    parser.add_argument("--flags", default="-O1 -DNDEBUG", help="how the copy is compiled (-O1 -DNDEBUG)")
    parser.add_argument("--jobs", type=int, default=2, help="compilers at once (2)")
    parser.add_argument("--list", action="store_true", help="print the draw and stop")
    parser.add_argument("--table", action="store_true", help="print the results so far and stop")
    options = parser.parse_args()
    work = options.work.resolve()
    results_file = work / "results.jsonl"

    if options.list:
        lines = [m for m in draw(ROOT, options.seed) if options.only in (None, m["room"])]
        for mutant in lines[:options.count]:
            print(f"{mutant['file']}:{mutant['line']}: {mutant['operator']}: {mutant['text'].strip()}")
        print(f"of {len(lines)} lines")
        return
    results = []
    if results_file.exists():
        results = [json.loads(line) for line in results_file.read_text().splitlines()]
    if options.table:
        print(table(results))
        return

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    tree = Tree(work, options.flags, options.jobs)
    commit = tree.copy()
    mutants = [m for m in draw(tree.tree, options.seed) if options.only in (None, m["room"])]
    # Room by room, so that a run that is interrupted early has built little; the draw decides which lines.
    mutants[:options.count] = sorted(mutants[:options.count], key=lambda mutant: list(ROOMS).index(mutant["room"]))
    tree.configure()
    baseline = Baseline(tree)
    done = {(m["file"], m["line"]): m for m in results}
    compiled = sum(m["verdict"] != "not compiled" for m in results)
    for mutant in mutants:
        if compiled >= options.count:
            break
        if (mutant["file"], mutant["line"]) in done:
            continue
        try_out(tree, mutant, baseline)
        compiled += mutant["verdict"] != "not compiled"
        with open(results_file, "a") as out:
            out.write(json.dumps(mutant) + "\n")
        results.append(mutant)
        print(f"[{compiled}/{options.count}] {mutant['file']}:{mutant['line']}: {mutant['operator']}: {mutant['verdict']}"
              f"{' by ' + mutant['by'] if mutant['by'] else ''}", flush=True)
    print(f"commit {commit}\n{table(results)}")


if __name__ == "__main__":
    main()
