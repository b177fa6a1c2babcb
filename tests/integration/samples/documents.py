#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: documents.py DIRECTORY-OF-PROGRAMS

Runs the commands of documents, in their order and as they stand there. A command that cannot run here is named below, so that
a new command of a document either runs or is named. Of the outputs beside the commands, headings have to be in the real output.
A script takes torchrun's place (launch.py), because Debian's does not work. Status 77: skipped, because torch is missing.
"""
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

SOURCES = pathlib.Path(__file__).resolve().parents[3]
PROGRAMS = pathlib.Path(sys.argv[1]).resolve()
PYTHON = "/usr/bin/python3"

# What is there before a document is read: `train.py` is the program of the reader.
TRAIN = """import os, runpy, sys
if "RANK" in os.environ:  # under torchrun
    sys.argv[1:] = "--width 4 --epochs 1 --images 128 --workers 0".split()
    runpy.run_path("train_plain.py", run_name="__main__")
else:
    os.execvp("paceline-train", ["paceline-train", *"--synthetic --model resnet18 --width 0.125 --image-size 32 --batch-size 4"
              " --iterations 8 --eval-every 0 --threads 1 --train-images 128 --test-images 4".split()])
"""
BEFORE = {"README.md": "for run in run1:1 run2:2 run4b:4; do"
          " mpirun --bind-to none -n ${run#*:} paceline record -o ${run%:*} -- python train.py; done"}

# The same work, smaller, and a viewer that ends by itself.
INSTEAD = [(r"--epochs 20", "--epochs 2"), (r"--iterations 100:102", "--iterations 10:12"),
           (r"^paceline view (?!--screenshot)", "paceline view --screenshot view.png ")]

# Commands that other tests run, or that need what this machine does not have.
ELSEWHERE = {
    "README.md": [r"samples/", r"tests/run\.sh"],
    "docs/tutorial.md": [],
    "docs/install.md": [r"samples/", r"tests/", r"cmake ", r"sudo apt ", r"pip install", r"out/library/slowest_rank"],
}
COMMAND = re.compile(r"(paceline|mpirun|torchrun|pip|cmake|sudo|samples/|tests/|cat|out/)")


def complete(text):
    try:
        return not text.endswith("\\") and bool(shlex.split(text, comments=True))
    except ValueError:  # a quotation is open
        return False


def commands_of(document):
    """Pairs of a command and the lines of output that follow it."""
    found = []
    for block in re.findall(r"(?:^ {4}.*\n|^\n(?= {4}))+", document.read_text(), flags=re.MULTILINE):
        lines = [line[4:] for line in block.splitlines()]
        with_outputs = any(line.startswith("$ ") for line in lines)
        if not with_outputs and not COMMAND.match(next(filter(None, lines), "")):
            continue
        command, before = "", len(found)
        for line in filter(None, lines):
            if command or not with_outputs or line.startswith("$ "):
                command += ("\n" if command else "") + (line if command else line.removeprefix("$ "))
                if complete(command):
                    found.append((command, []))
                    command = ""
            else:
                assert len(found) > before, f"{document}: an output without a command: {line}"
                found[-1][1].append(line)
        assert not command, f"{document}: a command does not end: {command}"
    return found


def words(line):
    return " ".join(line.split())


def run(name, environment):
    count = skipped = 0
    bash = ["bash", "-euo", "pipefail", "-c"]
    if name in BEFORE:
        subprocess.run([*bash, BEFORE[name]], env=environment, check=True, capture_output=True)
    for command, output in commands_of(SOURCES / name):
        if any(re.match(pattern, command) for pattern in ELSEWHERE[name]):
            skipped += 1
            continue
        if command.startswith("cat "):  # the reader's own file
            pathlib.Path(command.split()[1]).write_text("\n".join(output) + "\n")
        for pattern, replacement in INSTEAD:
            command = re.sub(pattern, replacement, command)
        done = subprocess.run([*bash, command], env=environment, capture_output=True, text=True)
        assert done.returncode == 0, f"{name}: status {done.returncode}: {command}\n{done.stdout}{done.stderr}"
        there = {words(line) for line in done.stdout.splitlines()}
        for line in output:
            heading = re.fullmatch(r" *[a-zA-Z][a-zA-Z ]+", line)
            assert not heading or words(line) in there, f"{name}: {command}\nhas no line '{line}':\n{done.stdout}{done.stderr}"
        count += 1
    print(f"{name}: {count} commands ran, {skipped} are run by other tests or elsewhere")
    return count


if subprocess.run([PYTHON, "-c", "import torch"], capture_output=True).returncode:
    print("skipped: no torch; samples/setup.sh --tests installs Debian's")
    sys.exit(77)
with tempfile.TemporaryDirectory() as work:
    os.mkdir(f"{work}/bin")
    for program, text in {"torchrun": '[ "$1" = --nproc-per-node ] || exit 2\n'
                                      f'shift\nexec {PYTHON} {SOURCES}/tests/integration/pytorch/launch.py "$@"',
                          "python": f'exec {PYTHON} "$@"'}.items():
        path = pathlib.Path(work, "bin", program)
        path.write_text(f"#!/usr/bin/env bash\n{text}\n")
        path.chmod(0o755)
    environment = dict(os.environ, PATH=f"{work}/bin:{PROGRAMS}:{os.environ['PATH']}", OMPI_ALLOW_RUN_AS_ROOT="1",
                       OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_rmaps_base_oversubscribe="1",
                       OMPI_MCA_mpi_yield_when_idle="1", QT_QPA_PLATFORM="offscreen", PYTHONDONTWRITEBYTECODE="1")
    for name in ELSEWHERE:
        place = pathlib.Path(work, name.replace("/", "-"))
        place.mkdir()
        os.chdir(place)
        shutil.copy(SOURCES / "samples/python/train_plain.py", place)
        (place / "train.py").write_text(TRAIN)
        run(name, environment)
    os.chdir(SOURCES)
