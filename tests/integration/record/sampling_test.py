#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: sampling_test.py PACELINE DENIED RANGES SLOW_DISK VENV MPIRUN TEST…

Samples of Python stacks: by every Python of this machine, beside py-spy, under churn, in children, and where the system
refuses the usual way to read memory. DENIED is the program of denied.c, RANGES the library of ranges_library.c, SLOW_DISK that
of slow_disk.c, VENV a folder for py-spy, which comes from PyPI.
"""
import collections
import glob
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import mpirun_end

PACELINE, DENIED, RANGES, SLOW_DISK, VENV, MPIRUN, *NAMES = sys.argv[1:]
PROGRAM = pathlib.Path(__file__).with_name("sampled.py")
PATIENCE_S = 300


def check(condition, what):
    if not condition:
        raise AssertionError(what)


def record(run, *command, hz=200, threads="main", before=()):
    done = subprocess.run([*before, PACELINE, "record", "-o", run, "--sample", str(hz), "--sample-threads", threads,
                           "--counters", "0", "--capture-range", "cudaProfilerApi", "--", *command],
                          capture_output=True, text=True, timeout=PATIENCE_S)
    check(done.returncode == 0, f"{command}: {done.returncode}: {done.stderr}")
    return done.stderr


def query(run, sql):
    done = subprocess.run([PACELINE, "query", "--format", "json", run, sql], capture_output=True, text=True,
                          timeout=PATIENCE_S)
    check(done.returncode == 0, done.stderr)
    return json.loads(done.stdout)


def stacks(run):
    """The stacks that were sampled, as (function, line) from the outermost one on, with their numbers of samples."""
    counts = {row["stack"]: row["n"] for row in query(run, "SELECT stack, count(*) AS n FROM samples GROUP BY stack")}
    frames = {}
    for row in query(run, "SELECT * FROM frames ORDER BY stack, depth"):
        frames.setdefault(row["stack"], []).append((row["function"], row["line"]))
    found = collections.Counter()  # stacks that differ in what a call concerned are one here
    for stack, count in counts.items():
        found[tuple(frames.get(stack, ()))] += count
    return found


def line_of(text):
    lines = PROGRAM.read_text().splitlines()
    return 1 + next(number for number, line in enumerate(lines) if text in line)


def without_class(function):
    return function.rsplit(".", 1)[-1]


def places(folder):
    """Function by function and line by line, in each Python from 3.8 to 3.15; others get one line."""
    pythons = sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/3.*/bin/python3"))) + ["/usr/bin/python3"]
    pythons += filter(None, map(shutil.which, ["python3.14", "python3.15"]))
    tested = 0
    for number, python in enumerate(pythons):
        version = subprocess.run([python, "-c", "import sys; print(*sys.version_info[:2])"], capture_output=True, text=True)
        if version.returncode != 0:
            continue
        minor = int(version.stdout.split()[1])
        run = folder / f"run{number}"
        said = record(run, python, PROGRAM, "places", "0.5")
        if not 8 <= minor <= 15:
            check("the layout of Python" in said or minor < 7, f"{python}: {said}")
            continue
        tested += 1
        check("layout" not in said, said)
        found = stacks(run)

        def seen(name, *wanted, found=found, python=python):
            """A stack that ends so, and whose outer part is one that the program has."""
            for stack in found:
                names = [(without_class(function), line) for function, line in stack]
                if names[-len(wanted):] == list(wanted) and names[0] == ("<module>", line_of("globals()[")):
                    return stack
            raise AssertionError(f"{python}: {name} was not sampled: {found}")

        sleeps = "[clock_nanosleep]" if minor >= 11 else "[pselect6]"
        outer = ("descend", line_of("return descend("))
        stack = seen("sleep_here", outer, ("descend", line_of("return function()")),
                     ("sleep_here", line_of("time.sleep(seconds)")), (sleeps, None))
        check(sum(name == "descend" for name, _ in stack) == 21, f"{python}: {stack}")
        loops = [stack for stack in found if stack and stack[-1][0] == "compute_here"]
        lines = {stack[-1][1] for stack in loops}
        check(lines and lines <= set(range(line_of("while time.mono"), line_of("while time.mono") + 4)), f"{python}: {lines}")
        seen("generate", ("generate", line_of("time.sleep(seconds / 2)")), (sleeps, None))
        seen("Loader", ("wait", line_of("self[0]")), ("__getitem__", line_of("os.read(")), ("[read]", None))
        files = query(run, "SELECT DISTINCT call_file FROM samples WHERE call = 'read' AND function LIKE '%getitem%'")
        check(files == [{"call_file": "pipe"}], f"{python}: {files}")
        # Also while the holder starts: it tells the starter so before it runs its function. But who waits for a thread to
        # end waits for no lock of Python.
        starting = {"notify", "notify_all", "set", "__exit__", "_bootstrap_inner", "run"}
        rows = query(run, "SELECT DISTINCT function, call_file FROM samples WHERE call = 'futex' AND call_file != ''")
        locks = [row for row in rows if without_class(row["function"]) != "wait"
                 or without_class(row["call_file"].replace("Python's lock, held by ", "")) not in starting]
        check({row["call_file"] for row in locks} == {"Python's lock, held by hold_the_lock"}, f"{python}: {locks}")
        functions = {without_class(row["function"]) for row in locks}
        check("ask_for_the_lock" in functions <= {"ask_for_the_lock", "wait", "_acquire_restore", "__exit__", "start"},
              f"{python}: {locks}")
    check(tested > 0, "no Python")


def churn(folder):
    """1,000 samples a second of all threads; each function and line is one that the program has."""
    record(folder / "run", sys.executable, PROGRAM, "churn", "4", hz=1000, threads="all")
    code = {"<module>", "churn", "work", "descend", "<lambda>", "<genexpr>", "run", "_bootstrap", "_bootstrap_inner",
            "start", "join", "wait", "_wait_for_tstate_lock", "release", "acquire", *(f"made_{i}" for i in range(7))}
    found, wrong, total = stacks(folder / "run"), 0, 0
    for stack, count in found.items():
        total += count
        names = [without_class(function) for function, _ in stack if not function.startswith("[")]
        known = all(name in code or not name.startswith("made") for name in names)
        wrong += count * (not known or (bool(names) and names[0] not in ("<module>", "_bootstrap")))
    check(total > 500, total)
    check(wrong <= total / 50, f"{wrong} of {total}")
    deep = max(len(stack) for stack in found)
    check(deep > 100, deep)


def children(folder):
    record(folder / "run", sys.executable, PROGRAM, "children", "2")
    check(any("children" in function for stack in stacks(folder / "run") for function, _ in stack), "no sample")


def denied(folder):
    """Filters of system calls that refuse process_vm_readv, or end the program for it."""
    for answer in ("EPERM", "ENOSYS", "KILL"):
        probe = subprocess.run([DENIED, answer, "true"])
        if probe.returncode == 77:
            return print("denied: left out: no filters here")
        record(folder / answer, sys.executable, PROGRAM, "places", "0.2", before=[DENIED, answer])
        check(any(stack and "sleep_here" in stack[-2][0] for stack in stacks(folder / answer) if len(stack) > 1), answer)


def slow_disk(folder):
    """Samples begin at once, also where the disk is slow to allocate the memory for further events."""
    run = folder / "run"
    record(run, sys.executable, PROGRAM, "places", "0.1", before=["env", f"LD_PRELOAD={SLOW_DISK}"])
    check(any(function == "places" for stack in stacks(run) for function, _ in stack), stacks(run))


def oracle(folder):
    """py-spy, which stops the program to read a stack, sees stacks that were sampled."""
    spy = pathlib.Path(VENV) / "bin" / "py-spy"
    if not spy.exists():
        made = subprocess.run(f"{sys.executable} -m venv {VENV} && {VENV}/bin/pip install --quiet --retries 0 "
                              "--timeout 10 --disable-pip-version-check --require-hashes -r /dev/stdin", shell=True, capture_output=True,
                              input=b"py-spy==0.4.3 --hash=sha256:8a4277225f470d394a85cca0cdd944bef87f0097b6f20150a6dd3ac2e92806b8")
        if made.returncode != 0:
            return print("oracle: left out: py-spy cannot be installed here")
    program = subprocess.Popen([PACELINE, "record", "-o", folder / "run", "--sample", "200", "--counters", "0",
                                "--capture-range", "cudaProfilerApi", "--", sys.executable, PROGRAM, "places", "5"])
    seen = set()
    try:
        while program.poll() is None:
            dump = subprocess.run([spy, "dump", "--pid", str(program.pid)], capture_output=True, text=True)
            main_thread = dump.stdout.partition("\nThread ")[2].partition("\nThread ")[0]
            frames = re.findall(r"^ {4}(\S+) \(.*:(\d+)\)$", main_thread, re.MULTILINE)
            if frames:
                seen.add(tuple((without_class(name), int(line)) for name, line in reversed(frames)))
            time.sleep(0.3)
    finally:
        program.kill()
        program.wait()
    ours = {tuple((without_class(function), line) for function, line in stack if not function.startswith("["))
            for stack in stacks(folder / "run")}
    theirs = {stack for stack in seen if stack[-1][0] in ("sleep_here", "generate", "__getitem__")}
    check(len(theirs) >= 3, f"py-spy saw {seen}")
    check(theirs <= ours, f"py-spy saw {theirs - ours}; sampled: {ours}")


def cause(folder):
    """Iterations are slow because they wait for a file: the report names it, and the function that reads it."""
    record(folder / "run", sys.executable, PROGRAM, "reads", "0.15", RANGES, folder / "slow")
    # The thread that samples is none of the program's: those that write into the FIFO run a few times.
    states = query(folder / "run", "SELECT track, count(*) AS n FROM thread_states JOIN tracks USING (track) "
                   "WHERE NOT main GROUP BY track")
    check(all(row["n"] < 50 for row in states), states)
    done = subprocess.run([PACELINE, "report", "--format", "json", folder / "run"], capture_output=True, text=True)
    slow = json.loads(done.stdout)["runs"][0]["causes"]["slow_iterations"]
    check(slow["iterations"] == [7, 15, 23, 31, 39], slow)
    check(slow["by_cause"].get("input_output", 0) > 0.8 * slow["excess_ns"], slow)
    function = slow["function"]
    check(function["name"].endswith("read_slowly") and function["line"] == line_of("os.read(slow"), function)
    check((function["innermost"], function["call_file"]) == ("[read]", str(folder / "slow")), function)
    text = subprocess.run([PACELINE, "report", folder / "run"], capture_output=True, text=True).stdout
    said = " ".join(text.split())
    check("waited for input or output" in said and f"which called [read] ({folder / 'slow'})" in said, text)


def has_mpi():
    return MPIRUN and subprocess.run(["/usr/bin/python3", "-c", "import mpi4py"], capture_output=True).returncode == 0


def hanging_job(run, ranks, *options):
    environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                       OMPI_MCA_rmaps_base_oversubscribe="1", OMPI_MCA_mpi_yield_when_idle="1",
                       OMPI_MCA_btl_vader_single_copy_mechanism="none")
    return subprocess.Popen([MPIRUN, "--bind-to", "none", "-n", str(ranks), PACELINE, "record", *options, "-o", run, "--",
                             "/usr/bin/python3", PROGRAM, "hangs", "0"], env=environment)


def request(folder):
    """`paceline watch --stacks` asks ranks that record no stacks of their own accord."""
    if not has_mpi():
        return print("request: left out: no mpirun, or no mpi4py")
    run = folder / "run"

    def asked():
        return subprocess.run([PACELINE, "watch", "--stacks", run], capture_output=True, text=True)

    job = hanging_job(run, 2)
    try:
        end = time.monotonic() + PATIENCE_S
        while True:
            answer = asked()
            read = "read (pipe) below hangs.<locals>.Images.__getitem__"
            if f"ank 1 is in {read}" in answer.stdout and "ank 0 is in hangs" in answer.stdout:
                break
            check(time.monotonic() < end, answer)
        lines = answer.stdout.splitlines()
        check(any(re.match(r"ranks 0 and 1  <module> \(sampled.py:\d+\)$", line) for line in lines), lines)
        check(any(re.match(r"rank 1 +\[read\] \(pipe\)$", line) for line in lines), lines)
        check(not (run / ".paceline-stacks").exists(), "the request is still there")
        # Ranks that are stopped do not answer.
        ranks = [int(row["pid"]) for row in json.loads(subprocess.run(
            [PACELINE, "info", "--format", "json", run], capture_output=True, text=True).stdout)["traces"]]
        for rank in ranks:
            os.kill(rank, signal.SIGSTOP)
        silent = asked()
        for rank in ranks:
            os.kill(rank, signal.SIGCONT)
        check(silent.returncode == 1 and "no process answered within 10 s" in silent.stderr, silent)
    finally:
        mpirun_end.end(job)
    ended = asked()
    check(ended.returncode == 1 and "no rank runs any more" in ended.stderr, ended)


def hang(folder):
    """Without --sample too, each rank records its stacks once; the one that is only quiet as well."""
    if not has_mpi():
        return print("hang: left out: no mpirun, or no mpi4py")
    job = hanging_job(folder / "run", 3, "--hang", "2")
    wanted = (f"Rank 2 is in read (pipe) below hangs.<locals>.Images.__getitem__ (sampled.py:{line_of('os.pipe()[0]')}); "
              "ranks 0 and 1 are in hangs (sampled.py:")
    end, said = time.monotonic() + PATIENCE_S, ""
    try:
        while wanted not in said and time.monotonic() < end:
            time.sleep(0.5)
            said = subprocess.run([PACELINE, "info", folder / "run"], capture_output=True, text=True).stdout
    finally:
        mpirun_end.end(job)
    check(wanted in said, said)


TESTS = {test.__name__: test for test in (places, churn, children, denied, slow_disk, oracle, cause, request, hang)}
for test in (TESTS[name] for name in NAMES):
    with tempfile.TemporaryDirectory() as folder:
        test(pathlib.Path(folder))
    print(f"{test.__name__}: passed", flush=True)
