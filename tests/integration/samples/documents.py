#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: documents.py DIRECTORY-OF-PROGRAMS [DOCUMENT…]

Runs the commands of all documents, in their order and as they stand there. A command that cannot run here is named below with the
reason, so that a new command of a document either runs or is named, and a name without a command is an error. Of the outputs
beside the commands, headings have to be in the real output. The examples in Python run in other tests (python_test.py).
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
import textwrap

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
RECORD = ("for run in RUNS; do mpirun --bind-to none -n ${run#*:} paceline record -o ${run%:*} --"
          " python train.py; done; ")
BEFORE = {"README.md": RECORD.replace("RUNS", "run1:1 run2:2 run4b:4"),
          "docs/analyse.md": RECORD.replace("RUNS", "run1:1 run2:2 run4:4 before:2 after:2 loader-80ms:2 loader-40ms:2")
          + "cp -r run4 run4096; cp -r run2 host1; mkdir host2; mv host1/*-r1-* host2/; mkdir nightly; "
          + "for run in before after; do paceline report --format json -o nightly/$run.json $run; done",
          "docs/coming-from.md": RECORD.replace("RUNS", "traces:2"),
          "docs/how-to/no-shared-disk.md": RECORD.replace("RUNS", "run4:4")
          + "mkdir run4-node1; mv run4 run4-node2; mv run4-node2/*-r[01]-* run4-node1/",
          "docs/queries.md": RECORD.replace("RUNS", "run4:4") + "echo 'SELECT * FROM ranks' >waits.sql",
          "docs/train.md": "paceline-train make-dataset pictures --format jpeg --image-size 64 --train 40 --test 20",
          "docs/view.md": RECORD.replace("RUNS", "run4:4")}

# The same work, smaller, and a viewer that ends by itself.
INSTEAD = [(r"--epochs 20", "--epochs 2"), (r"--iterations 100:102", "--iterations 10:12"),
           (r"^paceline view (?!--screenshot)", "paceline view --screenshot view.png "),
           (r"--iterations 100:119", "--iterations 2:5"), (r"--ranks 0,4-7 --from 1.5s --until 3s", "--ranks 0,1-3 --from 0s --until 3s"),
           (r"^paceline-view (.*) 10:12", r"paceline-view \1 2:3"), (r"make-dataset pictures", "make-dataset more-pictures"),
           (r"--iterations 120", "--iterations 30"), (r"--train-images 480", "--train-images 64"),
           (r"--train 2048 --test 512", "--train 40 --test 20"), (r"--batch-size 32 --epochs 3", "--batch-size 8 --epochs 1"),
           (r"--sizes 1M,25M", "--sizes 64K"), (r"mpirun -n", "mpirun --bind-to none -n")]

# Commands that are not run here, by the reason.
OTHER_TEST, CLUSTER, GPU, READER = "other tests run it", "it needs a cluster", "it needs a GPU", "it needs the reader's own program or data"
ELSEWHERE = {
    "README.md": {OTHER_TEST: [r"samples/", r"tests/run\.sh"]},
    "docs/tutorial.md": {},
    "docs/install.md": {OTHER_TEST: [r"samples/", r"cmake ", r"sudo apt ", r"pip install", r"out/library/slowest_rank"]},
    "docs/record.md": {CLUSTER: [r"srun "], READER: [r".*\./train ", r".*train\.py$", r".*…", r"kill ", r"paceline info run$"]},
    "docs/analyse.md": {OTHER_TEST: [r"paceline watch --stacks"],
                        READER: [r".*…", r"paceline info 'log", r"paceline report (scorep|traces|dumps)"]},
    "docs/queries.md": {},
    "docs/python.md": {OTHER_TEST: [r"pip install", r"(paceline record .*)?jupyter "]},
    "docs/view.md": {},
    "docs/train.md": {GPU: [r".*--device cuda", r".*--libraries"], OTHER_TEST: [r"samples/"], CLUSTER: [r"qsub "],
                      READER: [r"tensorboard ", r".*(imagenet|cifar10|--config run\.toml|--data DIR|--import-weights)"]},
    "docs/coming-from.md": {},
    "docs/hacking.md": {OTHER_TEST: [r"build/", r"tests/", r"chromium "]},
    "docs/how-to/slurm.md": {CLUSTER: [r"sbatch ", r"srun ", r"export ", r"paceline (report|watch) .run-"]},
    "docs/how-to/kubernetes.md": {CLUSTER: [r"kubectl ", r"paceline report run$"]},
    "docs/how-to/containers.md": {CLUSTER: [r"docker ", r"paceline report traces/run2", r".*apptainer "]},
    "docs/how-to/no-shared-disk.md": {CLUSTER: [r".*--host node1", r"scp "]},
}
COMMAND = re.compile(r"(paceline|mpirun|torchrun|pip|cmake|ctest|sudo|samples/|tests/|cat|out/|build/|sbatch|srun|qsub|kubectl|docker|scp|"
                     r"export|jupyter|chromium|kill)\b|work=")


def complete(text):
    try:
        return not text.endswith("\\") and bool(shlex.split(text, comments=True))
    except ValueError:  # a quotation is open
        return False


def commands_of(document):
    """Pairs of a command and the lines of output that follow it."""
    found = []
    text = re.sub(r"^```.*?^```$", "", document.read_text(), flags=re.MULTILINE | re.DOTALL)
    for block in re.findall(r"(?:^ {4}.*\n|^\n(?= {4}))+", text, flags=re.MULTILINE):
        lines = textwrap.dedent(block).splitlines()
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
    count, skipped, preparation, named = 0, 0, "", set()
    bash = ["bash", "-euo", "pipefail", "-c"]
    if name in BEFORE:
        subprocess.run([*bash, BEFORE[name]], env=environment, check=True, capture_output=True)
    for command, output in commands_of(SOURCES / name):
        patterns = {pattern for reason in ELSEWHERE[name].values() for pattern in reason if re.match(pattern, command)}
        if patterns:
            named |= patterns
            skipped += 1
            continue
        if re.match(r"\w+=", command):  # a variable of the commands after it
            preparation += command + "\n"
        if command.startswith("cat "):  # the reader's own file
            pathlib.Path(command.split()[1]).write_text("\n".join(output) + "\n")
        for pattern, replacement in INSTEAD:
            command = re.sub(pattern, replacement, command)
        done = subprocess.run([*bash, preparation + command], env=environment, capture_output=True, text=True)
        assert done.returncode == 0, f"{name}: status {done.returncode}: {command}\n{done.stdout}{done.stderr}"
        there = {words(line) for line in done.stdout.splitlines()}
        for line in output:
            heading = re.fullmatch(r" *[a-zA-Z][a-zA-Z ]+", line)
            assert not heading or words(line) in there, f"{name}: {command}\nhas no line '{line}':\n{done.stdout}{done.stderr}"
        count += 1
    unused = {pattern for reason in ELSEWHERE[name].values() for pattern in reason} - named
    assert not unused, f"{name}: no command is like {unused}"
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
    documents = {"README.md", *(str(path.relative_to(SOURCES)) for path in (SOURCES / "docs").rglob("*.md"))}
    without = {name for name in documents if not commands_of(SOURCES / name)}
    assert documents - without == set(ELSEWHERE), f"not in the table, or without commands: {(documents - without) ^ set(ELSEWHERE)}"
    for name in sys.argv[2:] or ELSEWHERE:
        place = pathlib.Path(work, name.replace("/", "-"))
        place.mkdir()
        os.chdir(place)
        shutil.copy(SOURCES / "samples/python/train_plain.py", place)
        (place / "train.py").write_text(TRAIN)
        run(name, environment)
    os.chdir(SOURCES)
