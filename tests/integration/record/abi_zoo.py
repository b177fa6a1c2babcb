#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records one program in the forms in which users have it, and prints a table in Markdown.

    abi_zoo.py PACELINE NVTX_INCLUDE [--denied FILE] [--mpi4py PYTHON] [--small] [--only TEXT]

A cell of the table is an MPI library, a language, a way to launch, a sanitizer and a container. Each cell runs twice in the
same surroundings: with a counter of MPI calls that shares nothing with Paceline (abi_zoo/counter.c), and with the recorder.
Exit status and output must be equal, the recorded calls must be those of the counter, one rank after another must be there,
and each rank must have its ranges. A cell whose program does not run here without the recorder is left out, with a line.

NVTX_INCLUDE is the folder of nvtx3/, --denied the program of denied.c, --mpi4py a Python with PyPI's mpi4py. --small runs
some twenty cells. --only runs the cells whose name contains a text. The exit status is 1 if a cell fails.
"""
import argparse
import collections
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

HERE = pathlib.Path(__file__).resolve().parent
SOURCES = HERE / "abi_zoo"
RANGES_OF_A_RANK = 10
CALLS_OF_A_RANK = 56
COUNTED = "Init Init_thread Comm_dup Allreduce Sendrecv Irecv Isend Waitall Comm_free Barrier Reduce Finalize".split()
LIBRARIES = {"Open MPI": ("openmpi", ["--bind-to", "none"], "libmpi.so.40"), "MPICH": ("mpich", [], "libmpich.so.12")}
PATIENCE_S = 60
# Debian's Python has Debian's mpi4py, which is built for Open MPI.
DEBIANS_PYTHON = "/usr/bin/python3"

BY_DLOPEN, BY_DLSYM = "dlopen of a library that uses MPI", "dlopen and dlsym of MPI"
Cell = collections.namedtuple("Cell", "library language launch sanitizer container")

# In a row of the table all but the library and the container stands still.
LANGUAGES = [("C", "mpirun", ""), ("C++", "mpirun", ""), ("Fortran, mpif.h", "mpirun", ""),
             ("Fortran, use mpi", "mpirun", ""), ("Fortran, use mpi_f08", "mpirun", ""),
             ("Python, Debian's mpi4py", "mpirun", ""), ("Python, PyPI's mpi4py", "mpirun", "")]
LAUNCHES = [("C", launch, "") for launch in (
    "no launcher", "recorder before mpirun", "shell script", "env", "chain of exec", "static launcher", "stripped",
    BY_DLOPEN, BY_DLSYM, "recorder in each rank's container",
    "recorder around each rank's container")]
SANITIZERS = [("C", "mpirun", sanitizer) for sanitizer in ("address", "thread", "undefined")]
FURTHER = [("Fortran, use mpi_f08", "no launcher", ""), ("Fortran, mpif.h", "static launcher", ""),
           ("Python, Debian's mpi4py", "shell script", ""), ("Python, PyPI's mpi4py", "no launcher", ""),
           ("Python, PyPI's mpi4py", "recorder before mpirun", ""), ("C++", "chain of exec", ""),
           ("C", "shell script", "address"), ("C", "static launcher", "address"), ("C", "no launcher", "thread"),
           ("C", BY_DLOPEN, "undefined"), ("C++", "mpirun", "address"), ("Fortran, use mpi_f08", "mpirun", "address"),
           ("Fortran, mpif.h", "shell script", "thread")]
ROWS = LANGUAGES + LAUNCHES + SANITIZERS + FURTHER
IN_NO_CONTAINER = {*FURTHER, ("C++", "mpirun", ""), ("Fortran, use mpi", "mpirun", ""), ("C", "env", ""),
                   ("C", "stripped", "")}
CONTAINERS = ["PID namespace", "user namespace", "read-only root", "seccomp EPERM", "seccomp ENOSYS"]
SMALL = [Cell(library, *row, "") for library in LIBRARIES for row in (
    LANGUAGES[4], LANGUAGES[6], ("C", "no launcher", ""), ("C", "static launcher", ""), ("C", "mpirun", "address"))] + [
    Cell("Open MPI", *LANGUAGES[5], ""), Cell("MPICH", "C", BY_DLSYM, "", ""),
    Cell("Open MPI", "C", "mpirun", "", "user namespace"), Cell("MPICH", "C", "mpirun", "", "read-only root"),
    Cell("Open MPI", "C", "mpirun", "thread", "seccomp EPERM"), Cell("MPICH", "C", "mpirun", "", "seccomp ENOSYS"),
    Cell("Open MPI", "C", "recorder in each rank's container", "", "PID namespace")]


def all_cells():
    """Every row with each library, and in the containers with one library after the other."""
    cells = [Cell(library, *row, "") for row in ROWS for library in LIBRARIES
             if "container" not in row[1] and (library == "Open MPI" or "Debian" not in row[0])]
    for number, row in enumerate(row for row in ROWS if row not in IN_NO_CONTAINER):
        for other, container in enumerate(CONTAINERS):
            library = list(LIBRARIES)[(number + other) % 2] if "Debian" not in row[0] else "Open MPI"
            cells.append(Cell(library, *row, container))
    return cells


class Missing(Exception):
    """What a cell needs is not on this machine."""


class Zoo:
    def __init__(self, options, folder):
        self.options, self.folder, self.built = options, folder, {}
        self.script = folder / "job.sh"
        self.script.write_text('#!/bin/sh\necho started\n"$@"\n')
        self.script.chmod(0o755)

    def compile(self, name, *command):
        """Builds a program once; returns its path."""
        path = self.folder / name
        if name not in self.built:
            tool = shutil.which(command[0])
            done = tool and subprocess.run([tool, *map(str, command[1:]), "-o", path], capture_output=True, text=True)
            self.built[name] = "" if tool and done.returncode == 0 else done.stderr if tool else f"no {command[0]}"
        if self.built[name]:
            raise Missing(self.built[name].strip().splitlines()[-1])
        return str(path)

    def compile_with_mpi(self, cell, name, compiler, *arguments):
        suffix = LIBRARIES[cell.library][0]
        command = f"{compiler}.{suffix}"
        if cell.library == "Open MPI" and not shutil.which(command):
            command = compiler
        return self.compile(f"{suffix}-{name}", command, "-w", "-O1", *arguments)

    def ranges_library(self):
        return self.compile("libzoo_ranges.so", "gcc", "-fPIC", "-shared", "-I", self.options.nvtx,
                            HERE / "ranges_library.c", "-ldl")

    def program(self, cell):
        """The command line of the cell's program."""
        source, nvtx = SOURCES / "program.c", ["-I", self.options.nvtx, "-ldl"]
        sanitizer = [f"-fsanitize={cell.sanitizer}"] if cell.sanitizer else []
        if cell.language.startswith("Python"):
            python = self.options.mpi4py if "PyPI" in cell.language else DEBIANS_PYTHON
            if subprocess.run([python, "-c", "import mpi4py"], capture_output=True).returncode != 0:
                raise Missing("no mpi4py")
            return [python, str(SOURCES / "program.py"), self.ranges_library()]
        if cell.language.startswith("Fortran"):
            interface = cell.language.split()[-1]
            flags = {"mpi": ["-DMODULE"], "mpi_f08": ["-DF08"]}.get(interface, []) + sanitizer
            return [self.compile_with_mpi(cell, f"fortran-{interface}{cell.sanitizer}", "mpif90", *flags,
                                          SOURCES / "program.F90", self.ranges_library())]
        if cell.language == "C++":
            return [self.compile_with_mpi(cell, f"cxx{cell.sanitizer}", "mpicxx", *sanitizer, "-x", "c++", source, *nvtx)]
        if cell.launch == BY_DLOPEN:
            plugin = self.compile_with_mpi(cell, f"plugin{cell.sanitizer}.so", "mpicc", "-fPIC", "-shared", "-DPLUGIN",
                                           *sanitizer, source, *nvtx)
            return [self.compile(f"host{cell.sanitizer}", "gcc", *sanitizer, SOURCES / "host.c", "-ldl"), plugin]
        if cell.launch == BY_DLSYM:
            # Only the header is MPI's.
            shown = subprocess.run([f"mpicc.{LIBRARIES[cell.library][0]}", "-show"], capture_output=True, text=True)
            includes = re.findall(r"-I\S+", shown.stdout)
            return [self.compile(f"{LIBRARIES[cell.library][0]}-dlsym", "gcc", "-w", *includes, source, *nvtx,
                                 f'-DBY_DLSYM="{LIBRARIES[cell.library][2]}"')]
        if cell.launch == "stripped":
            return [self.compile_with_mpi(cell, "stripped", "mpicc", "-s", source, *nvtx)]
        return [self.compile_with_mpi(cell, f"c{cell.sanitizer}", "mpicc", *sanitizer, source, *nvtx)]

    def container(self, kind, directory):
        """The start of a command line that runs the rest of it in a container; only `directory` may be written there."""
        if kind.startswith("seccomp"):
            if not self.options.denied:
                raise Missing("no --denied")
            return [self.options.denied, kind.split()[1]]
        return {"": [],
                "PID namespace": ["unshare", "--pid", "--fork", "--mount-proc"],
                "user namespace": ["unshare", "--map-root-user"],
                "read-only root": ["bwrap", "--unshare-user", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc",
                                   "--size", "65536", "--tmpfs", "/dev/shm", "--bind", str(directory), str(directory)],
                }[kind]

    def command(self, cell, attach, directory):
        """The command line of a cell. `attach` begins the command that the recorder or the counter is attached to."""
        suffix, options, _ = LIBRARIES[cell.library]
        mpirun = shutil.which(f"mpirun.{suffix}") or (shutil.which("mpirun") if cell.library == "Open MPI" else None)
        if not mpirun:
            raise Missing(f"no {cell.library}")
        start = [mpirun, *options, "-n", "2"]
        container, program = self.container(cell.container, directory), self.program(cell)
        if cell.launch == "recorder in each rank's container":
            return start + container + attach + program
        if cell.launch == "recorder around each rank's container":
            return start + attach + container + program

        def launcher(*flags):
            return self.compile("launcher" + "".join(flags), "gcc", *flags, SOURCES / "launcher.c")

        return container + {
            "no launcher": lambda: attach + program + ["3"],
            "recorder before mpirun": lambda: attach + start + program,
            "shell script": lambda: start + attach + [str(self.script)] + program,
            "env": lambda: start + attach + ["env", "ZOO=1"] + program,
            "chain of exec": lambda: start + attach + [launcher(), "sh", "-c", 'exec "$@"', "sh", launcher()] + program,
            "static launcher": lambda: start + attach + [launcher("-static")] + program,
        }.get(cell.launch, lambda: start + attach + program)()

    def run(self, cell, attach, directory):
        environment = dict(os.environ, TMPDIR=str(directory), OMPI_ALLOW_RUN_AS_ROOT="1",
                           OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_rmaps_base_oversubscribe="1",
                           OMPI_MCA_mpi_yield_when_idle="1", OMPI_MCA_btl_vader_single_copy_mechanism="none",
                           OMPI_MCA_plm_rsh_agent="", ASAN_OPTIONS="detect_leaks=0")  # MPI libraries leak
        if cell.container == "read-only root" or "each rank" in cell.launch:  # the ranks share no files in memory
            environment.update(OMPI_MCA_btl="self,tcp", UCX_TLS="self,sysv")
        if cell.sanitizer == "thread":  # UCX replaces functions that the sanitizer calls before it is ready
            environment.update(UCX_MEM_EVENTS="no")
        if cell.library == "MPICH" and "PyPI" in cell.language:
            abi = self.folder / "abi"  # Debian's MPICH does not have the name of the ABI that the family shares
            if not abi.exists():
                shown = subprocess.run(["ldd", self.compile_with_mpi(cell, "c", "mpicc", SOURCES / "program.c", "-I",
                                                                     self.options.nvtx, "-ldl")],
                                       capture_output=True, text=True)
                abi.mkdir()
                (abi / "libmpi.so.12").symlink_to(re.search(r"libmpich\S* => (\S+)", shown.stdout)[1])
            environment.update(MPI4PY_MPIABI="mpich", LD_LIBRARY_PATH=str(abi))
        with open(directory / "out", "w") as out, open(directory / "err", "w") as err:
            process = subprocess.Popen(self.command(cell, attach, directory), env=environment, cwd=directory, stdout=out,
                                       stderr=err, stdin=subprocess.DEVNULL, start_new_session=True)
            try:
                status = process.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGTERM)  # mpirun ends its ranks
                time.sleep(5)
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                status = "hangs"
        lines = sorted((directory / "out").read_text().splitlines())
        return status, lines, (directory / "err").read_text()

    def count(self, cell, directory):
        """Status and output without the recorder, and the calls of all ranks."""
        counts = directory / "counts"
        counts.mkdir()
        counter = self.compile_with_mpi(cell, "counter.so", "mpicc", "-fPIC", "-shared", SOURCES / "counter.c", "-ldl")
        attach = ["env", f"LD_PRELOAD={counter}", f"MPI_COUNTS={counts}"]
        if cell.sanitizer == "address":
            attach += ["ASAN_OPTIONS=detect_leaks=0:verify_asan_link_order=0"]
        if cell.sanitizer == "thread":
            attach += ["TSAN_OPTIONS=ignore_noninstrumented_modules=1"]
        status, lines, errors = self.run(cell, attach, directory)
        if status != (3 if cell.launch == "no launcher" else 0):
            raise Missing(f"status {status} without the recorder: {(errors.strip() or '-').splitlines()[0]}")
        calls = collections.Counter()
        for file in counts.iterdir():
            for line in file.read_text().splitlines():
                name, number = line.split()
                c = re.fullmatch(r"MPI_(\w+?)(_c)?", name)
                fortran = re.fullmatch(r"mpi_(\w+?)_(f08ts_|f08_)?", name)
                if c and not cell.language.startswith("Fortran"):
                    calls[c[1]] += int(number)
                elif fortran and cell.language.startswith("Fortran") and bool(fortran[2]) == ("f08" in cell.language):
                    calls[fortran[1].capitalize()] += int(number)
        ranks = 1 if cell.launch == "no launcher" else 2
        if cell.launch != BY_DLSYM and sum(calls.values()) != ranks * CALLS_OF_A_RANK:
            raise AssertionError(f"the counter counts {dict(calls)}")
        return status, lines, calls, ranks

    def json_of(self, *arguments):
        done = subprocess.run([self.options.paceline, *map(str, arguments)], capture_output=True, text=True)
        return json.loads(done.stdout) if done.returncode == 0 else done.stderr

    def check(self, cell, directory):
        """Returns what the table shows, and the faults."""
        status, lines, calls, ranks = self.count(cell, directory)
        run = directory / "run"
        recorded = self.run(cell, [self.options.paceline, "record", "-o", str(run), "--"], directory)
        faults = []
        if recorded[0] != status:
            faults.append(f"status {recorded[0]} instead of {status}: {recorded[2][-400:]}")
        if recorded[1] != lines:
            faults.append(f"output {recorded[1]} instead of {lines}")
        said = [line for line in recorded[2].splitlines()
                if line.startswith("paceline: ") and "recorded as sums: a seccomp filter applies" not in line]
        if cell.launch == BY_DLSYM:  # a limit: the program is unharmed, the calls are missing, and a line says so
            calls = collections.Counter()
            if len(said) != 1 or "no call of MPI was seen" not in said[0]:
                faults.append(f"no line about the missing calls: {said}")
        elif said:
            faults.append(said[0])
        info = self.json_of("info", "--format", "json", run)
        slices = self.json_of("query", "--format", "json", run,
                              "SELECT rank, category, domain, name, count(*) AS count FROM slices GROUP BY 1, 2, 3, 4")
        if isinstance(info, str) or isinstance(slices, str):
            return "0", faults + [info if isinstance(info, str) else slices]
        for trace in info["traces"]:
            if trace["damaged"] or trace["dropped"] or trace["world_size"] != ranks:
                faults.append(f"{trace['path']}: damaged {trace['damaged']}, dropped {trace['dropped']}, "
                              f"of {trace['world_size']} ranks")
        found = sorted(trace["rank"] for trace in info["traces"])
        if found != list(range(ranks)):
            faults.append(f"ranks {found}")
        seen, ranges = collections.Counter(), collections.Counter()
        for row in slices:
            if row["name"] == "step":
                ranges[row["rank"]] += row["count"]
            elif row["domain"] == "mpi":
                name = row["name"].removeprefix("MPI_")
                if name in COUNTED or not cell.language.startswith("Python"):  # mpi4py calls more
                    seen[name] += row["count"]
        if {name.lower(): number for name, number in seen.items()} != {name.lower(): n for name, n in calls.items()}:
            faults.append(f"calls {dict(seen - calls)} too many, {dict(calls - seen)} too few")
        if ranges != {rank: RANGES_OF_A_RANK for rank in range(ranks)}:
            faults.append(f"ranges {dict(ranges)}")
        return f"{sum(seen.values())} + {sum(ranges.values())}", faults


def name_of(row):
    language, launch, sanitizer = row
    return language + ("" if launch == "mpirun" else f"; {launch}") + (f"; -fsanitize={sanitizer}" if sanitizer else "")


def print_table(results):
    """Rows of programs; columns of libraries without a container, and of containers."""
    columns = ["program", *LIBRARIES, *CONTAINERS]
    print(f"\n| {' | '.join(columns)} |\n|{'---|' * len(columns)}")
    for row in ROWS:
        shown = [results.get(Cell(library, *row, ""), "") for library in LIBRARIES]
        for container in CONTAINERS:
            shown.append("; ".join(f"{library}: {results[cell]}" for library in LIBRARIES
                                   if (cell := Cell(library, *row, container)) in results))
        if any(shown):
            print(f"| {name_of(row)} | {' | '.join(shown)} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paceline")
    parser.add_argument("nvtx")
    parser.add_argument("--denied", default="")
    parser.add_argument("--mpi4py", default=DEBIANS_PYTHON)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    options.paceline, options.mpi4py = os.path.abspath(options.paceline), os.path.abspath(options.mpi4py)
    results, failed, left_out = {}, 0, 0
    with tempfile.TemporaryDirectory(prefix="paceline-zoo-") as folder:
        zoo = Zoo(options, pathlib.Path(folder))
        for cell in SMALL if options.small else all_cells():
            name = f"{cell.library}; {name_of(cell[1:4])}" + (f"; {cell.container}" if cell.container else "")
            if options.only not in name:
                continue
            directory = pathlib.Path(folder) / f"cell{len(results)}"
            directory.mkdir()
            try:
                shown, faults = zoo.check(cell, directory)
            except Missing as missing:
                shown, faults = "–", []
                left_out += 1
                print(f"left out: {name}: {missing}", flush=True)
            results[cell] = shown + (" !" if faults else "")
            failed += bool(faults)
            for fault in faults:
                print(f"FAILED: {name}: {fault}", flush=True)
            shutil.rmtree(directory, ignore_errors=True)
    print_table(results)
    print(f"\n{len(results)} cells: {len(results) - failed - left_out} as expected, {failed} failed, {left_out} left out")
    sys.exit(1 if failed or len(results) == left_out else 0)


main()
