#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: pytorch_test.py PACELINE SOURCES [TEST…]

Unchanged PyTorch programs under `paceline record --pytorch`: phases, collectives of gloo, faults that the report must
name, and programs that do unusual things to the interpreter. Runs with an interpreter that has torch, such as Debian's;
ends with 77 where there is none.
"""
import json
import os
import pathlib
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import unittest

PACELINE, SOURCES = sys.argv[1], pathlib.Path(sys.argv[2])
HERE = SOURCES / "tests/integration/pytorch"
SAMPLE = str(SOURCES / "samples/python/train_plain.py")
PYTHON = sys.executable


class Recorded(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="paceline pytorch "))

    def tearDown(self):
        shutil.rmtree(self.folder)

    def run_program(self, *command, status=0, **variables):
        environment = dict(os.environ, OMP_NUM_THREADS="1", **variables)
        started = subprocess.Popen(command, cwd=self.folder, env=environment, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
        try:
            output, errors = started.communicate(timeout=200)
        except subprocess.TimeoutExpired:
            os.killpg(started.pid, signal.SIGABRT)  # ranks under launch.py print where they are
            output, errors = started.communicate()
            self.fail(f"{command} was still running after 200 s.\n{output}{errors}")
        ended = subprocess.CompletedProcess(command, started.returncode, output, errors)
        self.assertEqual(ended.returncode, status, ended.stderr)
        return ended

    def record(self, *command, mode="--pytorch", **more):
        """Records into the folder `run`, which must not exist yet."""
        return self.run_program(PACELINE, "record", mode, "-o", "run", "--", *command, **more)

    def launch(self, ranks, *arguments):
        return (PYTHON, str(HERE / "launch.py"), str(ranks), *arguments)

    def script(self, text):
        """A file with this program. One that communicates ends with `destroy_process_group`: a thread of gloo that frees a tensor
        while Python ends calls `terminate`, also without a recorder (1 of 40 runs of PyTorch 1.13)."""
        file = self.folder / "script.py"
        file.write_text(text)
        return str(file)

    def report(self):
        ended = self.run_program(PACELINE, "report", "--format", "json", "run")
        shares = re.findall(r"([0-9.,]+) % of (?:a step|its wall time|the step|the delay)", ended.stdout)
        self.assertLessEqual(max([0, *(float(share.replace(",", "")) for share in shares)]), 100)
        return json.loads(ended.stdout)

    def events(self):
        """Ranges and marks of all ranks, as rows of a table."""
        import csv

        self.run_program(PACELINE, "export", "--to", "csv", "-o", "run.csv", "run")
        with open(self.folder / "run.csv", newline="") as file:
            return list(csv.DictReader(file))

    def names(self, kind="slice"):
        return [row["name"] for row in self.events() if row["kind"] == kind]

    def results(self, ended):
        """The lines of the ranks, which may write between each other's line and its end."""
        return sorted(re.findall(r"rank \d of \d: loss [-0-9.]+, accuracy [0-9.]+, weights [0-9a-f]{16}", ended.stdout))

    def assert_nothing_said(self, ended):
        self.assertNotIn("paceline", ended.stderr)


class Hangs(Recorded):
    SCRIPT = """
import os, time
import torch
import torch.distributed as dist
dist.init_process_group("gloo")
for i in range(3):
    dist.all_reduce(torch.ones(4))
if dist.get_rank() == 1:
    time.sleep(3600)
dist.all_reduce(torch.ones(4))
"""
    TEXT = "Rank 1 never entered gloo:all_reduce #4 on default group; rank 0 has waited in it since "

    def test_a_collective_of_gloo_that_a_rank_never_enters_is_named(self):
        errors = self.folder / "errors"
        with open(errors, "w") as file:
            job = subprocess.Popen([PACELINE, "record", "--pytorch", "--hang", "2", "-o", "run", "--",
                                    *self.launch(2, self.script(self.SCRIPT))], cwd=self.folder, stdout=file, stderr=file,
                                   start_new_session=True)
        try:
            self.until(lambda: re.search(r"hang\? rank 0.*gloo:all_reduce #4 has been open for", errors.read_text()), errors)
            self.until(lambda: any(self.TEXT in hang for hang in self.watch()["hangs"]), errors)
        finally:
            os.killpg(job.pid, signal.SIGKILL)
            job.wait()
        self.assertNotIn("hang? rank 1", errors.read_text())
        self.assertIn(self.TEXT, self.run_program(PACELINE, "info", "run").stdout)
        self.assertIn(self.TEXT, self.report()["runs"][0]["hangs"][0])

    def test_a_collective_that_another_ranks_death_ended_is_named(self):
        # No launcher ends rank 0.
        script = self.script(self.SCRIPT.replace("time.sleep(3600)", "os._exit(0)"))
        job = f"for RANK in 0 1; do export RANK; {PYTHON} '{script}' & done; wait; exit 1"
        for port in random.sample(range(20000, 32000), 10):  # one may be in use
            shutil.rmtree(self.folder / "run", ignore_errors=True)
            ended = self.record("sh", "-c", job, status=1, WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
            if "EADDRINUSE" not in ended.stderr:
                break
        text = r"Rank 1 never entered gloo:all_reduce #4 on default group, which therefore failed: rank 0 was in it from "
        self.assertIn(text, self.run_program(PACELINE, "info", "run").stdout)
        self.assertIn(text, self.report()["runs"][0]["hangs"][0])

    def watch(self):
        return json.loads(self.run_program(PACELINE, "watch", "--once", "--json", "run").stdout)

    def until(self, shown, errors):
        end = time.monotonic() + 120
        while not shown():
            self.assertLess(time.monotonic(), end, errors.read_text())
            time.sleep(0.2)


class Training(Recorded):
    def test_a_ddp_job_is_recorded_by_phases_and_computes_the_same(self):
        arguments = (SAMPLE, "--images", "512", "--workers", "2", "--checkpoint", "weights.pt")
        alone = self.run_program(*self.launch(2, *arguments))
        # On a busy machine threads switch more often than is recorded, about which the recorder would print a line.
        recorded = self.run_program(PACELINE, "record", "--scheduler", "sums", "--pytorch", "-o", "run", "--",
                                    *self.launch(2, *arguments))
        self.assert_nothing_said(recorded)
        self.assertEqual(self.results(alone), self.results(recorded))
        self.assertEqual(len(self.results(recorded)), 2)

        report = self.report()
        run = report["runs"][0]
        self.assertEqual(run["iterations"]["count"], 2 * 512 // 16 // 2)
        self.assertEqual(run["config"]["model"], "Sequential")
        self.assertEqual(run["config"]["global_batch"], 32)
        self.assertEqual(run["config"]["ranks"], 2)
        self.assertEqual([rank["rank"] for rank in run["per_rank"]], [0, 1])
        for rank in run["per_rank"]:
            phases = rank["phases"]
            self.assertEqual(sum(phases.values()), rank["wall_ns"])
            for phase in ("preprocess", "forward", "backward", "optimizer", "communication", "evaluate"):
                self.assertGreater(phases[phase], 0, phase)
        self.assertGreater(run["per_rank"][0]["phases"]["checkpoint"], 0)

        events = self.events()
        for rank in ("0", "1"):
            main = [row for row in events if row["rank"] == rank and row["track"] == "main thread"]
            iterations = sum(int(row["duration_ns"]) for row in main if row["name"] == "iteration")
            inside = sum(int(row["duration_ns"]) for row in main if row["kind"] == "slice" and row["depth"] == "1")
            self.assertGreater(inside, 0.95 * iterations)  # the rest is the phase `other`
            self.assertEqual(sum(row["name"] == "checkpoint" for row in main), 2 if rank == "0" else 0)
            helpers = {row["track"] for row in events if row["rank"] == rank and row["name"] in ("fetch", "collate")}
            self.assertGreaterEqual(len([track for track in helpers if track.startswith("process ")]), 2, helpers)

        self.assertNotIn("unobserved", {row["category"] for row in events})
        gloo = {}
        for row in run["collectives"]:
            if row["operation"].startswith("gloo:"):
                gloo[row["operation"]] = gloo.get(row["operation"], 0) + row["count"]
                self.assertIn("wait_ns", row)
        self.assertGreaterEqual(gloo["gloo:all_reduce"], 32 + 2)  # the gradients' and the evaluations'
        self.assertGreaterEqual(gloo["gloo:broadcast"], 32)       # the buffers of the batch norm
        self.assertFalse(run.get("unmatched_calls"))
        self.assertGreater(sum(rank["waits"]["waited_ns"] for rank in run["per_rank"]), 0)

    def test_collectives_that_no_hook_sees_are_counted(self):
        self.record(*self.launch(2, self.script("""
import inspect
import torch
import torch.distributed as dist
dist.init_process_group("gloo")
for i in range(40):
    dist.all_reduce(torch.ones(4))
group = dist.distributed_c10d._get_default_group()
unhooked = inspect.unwrap(type(group).allreduce)
for i in range(60):
    unhooked(group, [torch.ones(4)]).wait()
dist.destroy_process_group()
""")))
        counted = [float(json.loads(row["args"])["payload"]) for row in self.events() if row["category"] == "unobserved"]
        self.assertEqual(len(counted), 2)
        for count in counted:
            self.assertEqual(count, 60)
        self.assertIn("Communication was not observed", " ".join(of["text"] for of in self.report()["findings"]))

    def test_a_collective_that_ends_after_the_script_ends_the_process_well(self):
        # Python's callbacks of a future, called while Python ends, would abort rank 0.
        self.record(*self.launch(2, self.script("""
import time
import torch
import torch.distributed as dist
dist.init_process_group("gloo")
values = torch.ones(4)
dist.all_reduce(values)
if dist.get_rank() == 1:
    time.sleep(0.3)
work = dist.all_reduce(values, async_op=True)
if dist.get_rank() == 1:
    work.wait()
""")))
        all_reduces = [row for row in self.events() if row["name"] == "gloo:all_reduce"]
        self.assertEqual(len(all_reduces), 4)
        longest = max(float(row["duration_ns"]) for row in all_reduces)
        self.assertGreater(longest, 0.2e9)

    def test_a_hook_of_ddp_that_is_released_late_ends_the_process_well(self):
        # PyTorch 2.15 alone aborts here (1.13 does not): a thread of gloo outlives the group, and releases the callback of the
        # hook while Python ends.
        self.record(*self.launch(2, self.script("""
import time
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
class Halves:
    def __call__(self, future):
        return future.value()[0] / 2
    def __del__(self, sleep=time.sleep):
        sleep(0.003)
def halved(_, bucket):
    return dist.all_reduce(bucket.buffer(), async_op=True).get_future().then(Halves())
def main():
    dist.init_process_group("gloo")
    model = DistributedDataParallel(torch.nn.Linear(64, 64))
    model.register_comm_hook(None, halved)
    for _ in range(3):
        model(torch.ones(4, 64)).sum().backward()
    dist.destroy_process_group()
main()
""")))
        self.assertEqual(self.report()["runs"][0]["ranks"], 2)

    def test_a_scatter_has_the_bytes_of_all_parts_on_every_rank(self):
        self.record(*self.launch(2, self.script("""
import torch
import torch.distributed as dist
dist.init_process_group("gloo")
parts = [torch.ones(6), torch.ones(6)] if dist.get_rank() == 0 else None
dist.scatter(torch.empty(6), parts, src=0)
dist.destroy_process_group()
""")))
        sizes = [json.loads(row["args"])["bytes"] for row in self.events() if row["name"] == "gloo:scatter"]
        self.assertEqual(sizes, [48, 48])

    def test_a_slow_data_set_is_named(self):
        self.record(*self.launch(2, SAMPLE, "--images", "256", "--workers", "1", "--slow-item", "16", "--width", "4"))
        report = self.report()
        findings = " ".join(finding["text"] for finding in report["findings"])
        self.assertRegex(findings, r"The training waits for input during [0-9.]+ % of the time\. More loader threads would hide this, or "
                                   r"deeper prefetching where only single batches are late\.")
        for rank in report["runs"][0]["per_rank"]:
            self.assertGreater(rank["phases"]["preprocess"], 0.5 * rank["phases"].get("forward", 0))

    def test_unequal_batches_are_named_and_all_images_counted(self):
        self.record(*self.launch(2, self.script("""
import torch
import torch.distributed as dist
dist.init_process_group("gloo")
batch = 16 + 16 * dist.get_rank()
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 8))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
images = torch.utils.data.TensorDataset(torch.ones(20 * batch, 64))
for (image,) in torch.utils.data.DataLoader(images, batch):
    optimizer.zero_grad()
    model(image).sum().backward()
    optimizer.step()
dist.barrier()
dist.destroy_process_group()
""")))
        report = self.report()
        run = report["runs"][0]
        self.assertEqual(run["iterations"]["count"], 20)
        self.assertEqual(run["iterations"]["images"], 20 * 48)
        self.assertEqual((run["config"]["batch_per_rank"], run["config"]["global_batch"]), ([16, 32], 48))
        found = [finding["text"] for finding in report["findings"] if finding.get("kind") == "unequal batches"]
        self.assertEqual(len(found), 1)
        self.assertIn("16 images of an iteration on rank 0, 32 on rank 1", found[0])

    def test_three_ranks_compute_the_same(self):
        arguments = (SAMPLE, "--images", "192", "--epochs", "1", "--workers", "0", "--width", "8")
        alone = self.run_program(*self.launch(3, *arguments))
        recorded = self.record(*self.launch(3, *arguments))
        self.assertEqual(self.results(alone), self.results(recorded))
        self.assertEqual(len(self.results(recorded)), 3)
        run = self.report()["runs"][0]
        self.assertEqual(run["iterations"]["count"], 4)
        self.assertFalse(run.get("unmatched_calls"))

    def test_modules_are_an_inner_level(self):
        self.record(PYTHON, self.script("""
import torch
model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU()))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    model(torch.randn(2, 4)).sum().backward()
    optimizer.step()
"""), mode="--pytorch=modules")
        names = self.names()
        for module in ("0", "1", "1.0", "1.1"):
            self.assertEqual(names.count(module), 3, module)
        self.assertEqual(names.count("forward"), 3)
        self.assertEqual(names.count("iteration"), 3)


class Delays(Recorded):
    """How long a rank is late, on a machine that does nothing else."""

    def test_a_slow_rank_and_its_phase_are_named(self):
        self.record(*self.launch(2, SAMPLE, "--images", "1024", "--epochs", "3", "--workers", "0", "--width", "4",
                                 "--slow-rank", "1"))
        report = self.report()
        findings = " ".join(finding["text"] for finding in report["findings"])
        self.assertRegex(findings, r"Rank 1 .*later")
        self.assertIn("Its code outside all phases (other) takes", findings)
        self.assertNotRegex(findings, r"Rank 0 on [^ ]* arrived")
        other = [rank["phases"]["other"] for rank in report["runs"][0]["per_rank"]]
        self.assertGreater(other[1] - other[0], 96 * 25_000_000)  # outside forward and backward

    def test_a_delay_counts_once_however_many_buckets_are_in_flight(self):
        for buckets in (1, 2, 13):
            ended = self.record(*self.launch(2, str(HERE / "buckets.py"), str(buckets), "60"))
            slept_ns = 1e6 * float(re.search(r"slept ([0-9.]+) ms", ended.stdout).group(1))
            report = self.report()
            run = report["runs"][0]
            reduced = [row["count"] for row in run["collectives"] if row["operation"] == "gloo:all_reduce"]
            # The first iteration of DistributedDataParallel divides the gradient by the order of the parameters.
            self.assertAlmostEqual(sum(reduced) / 60, buckets, delta=0.3)
            # Where each bucket counted, the rank was late by up to 13 times the sleep. Other programs may delay the ranks.
            late_ns = statistics.median(second - first for first, second in zip(*run["heat_map"]["ns"]))
            self.assertGreater(late_ns, 0.5 * slept_ns)
            self.assertLess(late_ns, 1.5 * slept_ns)
            for late in run["lateness"]["slow_ranks"]:
                self.assertEqual(late["rank"], 1)
                self.assertLessEqual(late["share_of_step"], 1)
                self.assertEqual(late["phase"], "other")
            for rank in run["per_rank"]:
                self.assertLessEqual(rank["waits"]["waited_ns"], rank["waits"]["blocked_ns"])
                self.assertLessEqual(rank["waits"]["blocked_ns"], rank["wall_ns"])
            shutil.rmtree(self.folder / "run")

    def test_a_communication_hook_hides_no_communication(self):
        # Not PowerSGD: it waits in gloo's two threads, where two reductions can wait for each other for ever.
        for hook in "fp16", "own":
            with self.subTest(hook):
                ended = self.record(*self.launch(2, str(HERE / "buckets.py"), "2", "60", hook))
                slept_ns = 1e6 * float(re.search(r"slept ([0-9.]+) ms", ended.stdout).group(1))
                run = self.report()["runs"][0]
                reduced = [row["count"] for row in run["collectives"] if row["operation"] == "gloo:all_reduce"]
                self.assertGreater(sum(reduced) / 60, 1.9)
                self.assertFalse(run.get("unmatched_calls"))
                # Rank 0 waits for rank 1 where the reducer does, at the end of the backward.
                first, second = (rank["phases"].get("communication", 0) for rank in run["per_rank"])
                self.assertGreater((first - second) / 60, 0.3 * slept_ns)
                self.assertGreater(run["per_rank"][0]["waits"]["waited_ns"] / 60, 0.3 * slept_ns)
                self.assertEqual({late["rank"] for late in run["lateness"]["slow_ranks"]} - {1}, set())
            shutil.rmtree(self.folder / "run")


class Interpreter(Recorded):
    LOOP = """
import torch
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def step():
    optimizer.zero_grad()
    model(torch.ones(2, 4)).sum().backward()
    optimizer.step()
for _ in range(3):
    step()
"""

    def test_a_program_without_torch_is_left_alone(self):
        ended = self.record(PYTHON, self.script("import sys; print('ctypes' in sys.modules, len(sys.path))"))
        alone = self.run_program(PYTHON, "script.py")
        self.assertEqual(ended.stdout, alone.stdout)
        self.assertEqual(list((self.folder / "run").glob("*.pace")), [])

    def test_another_sitecustomize_runs_too(self):
        site = self.folder / "their site"
        site.mkdir()
        (site / "sitecustomize.py").write_text("print('theirs', __name__)")
        program = self.script("import sys, sitecustomize; print(sitecustomize.__file__, sys.path[1:])")
        alone = self.run_program(PYTHON, program, PYTHONPATH=str(site))
        recorded = self.record(PYTHON, program, PYTHONPATH=str(site))
        self.assertEqual(recorded.stdout, alone.stdout)
        self.assertIn("theirs sitecustomize", alone.stdout)

    def test_a_module_and_a_virtual_environment_are_recorded(self):
        self.run_program(PYTHON, "-m", "venv", "--without-pip", "--system-site-packages", "venv")
        self.script(self.LOOP)
        self.record(str(self.folder / "venv/bin/python"), "-m", "script")
        self.assertEqual(self.names().count("iteration"), 3)

    def test_ranks_that_mpirun_started_need_no_mpi(self):
        self.assert_nothing_said(self.record(PYTHON, self.script(self.LOOP), OMPI_COMM_WORLD_RANK="0", OMPI_COMM_WORLD_SIZE="2"))

    def test_an_interpreter_that_ignores_the_hooks_is_said(self):
        program = self.script("print('ran')")
        for options, named in ((["-I"], "-I"), (["-S"], "-S"), (["-bE"], "-E"), (["-X", "dev", "-I"], "-I")):
            ended = self.record(PYTHON, *options, program)
            self.assertEqual(ended.stdout, "ran\n")
            self.assertRegex(ended.stderr, "paceline: PyTorch is not recorded: " + named)
        self.assertNotIn("PyTorch", self.record(PYTHON, "-c", "print('ran')", "-I").stderr)

    def test_an_interpreter_that_ignores_the_hooks_is_said_behind_other_programs(self):
        program = pathlib.Path(self.script(f"#!{PYTHON} -I\nimport torch\nprint('ran')\n"))
        program.chmod(0o755)
        for command in (["env", "A=1", PYTHON, "-E", program], ["sh", "-c", f"'{PYTHON}' -I script.py; true"], [program]):
            ended = self.record(*map(str, command))
            self.assertEqual(ended.stdout, "ran\n")
            self.assertEqual(len(re.findall("^paceline: PyTorch is not recorded: -[IE] makes the interpreter ignore PYTHONPATH",
                                            ended.stderr, re.M)), 1, ended.stderr)
        ended = self.record(*self.launch(2, "-c", "import subprocess, sys; subprocess.run([sys.executable, '-I', 'script.py'])"))
        self.assertEqual(ended.stderr.count("PyTorch is not recorded"), 1, ended.stderr)
        code = "import multiprocessing; multiprocessing.get_context('spawn').Process(target=print, args=('ran',)).start()"
        ended = self.record(PYTHON, "-I", "-c", code)
        self.assertEqual((ended.stdout, ended.stderr.count("PyTorch is not recorded")), ("ran\n", 1), ended.stderr)

    def test_an_interpreter_without_site_keeps_its_path(self):
        program = self.script("import os, sys; print(sys.path[1:], os.environ.get('PYTHONPATH'))")
        for path in ({}, {"PYTHONPATH": "/a folder/x:/b"}):
            alone = self.run_program(PYTHON, "-S", program, **path)
            self.assertEqual(self.record(PYTHON, "-S", program, **path).stdout, alone.stdout)

    def test_an_import_inside_a_function_and_a_second_import(self):
        ended = self.record(PYTHON, self.script("""
import sys
def train():
""" + "".join("    " + line + "\n" for line in self.LOOP.splitlines()) + """
train()
saved = sys.modules["torch"]
del sys.modules["torch"]
assert "torch" not in sys.modules
sys.modules["torch"] = saved
train()
print("done")
"""))
        self.assertEqual(ended.stdout, "done\n")
        self.assertEqual(self.names().count("iteration"), 6)

    def test_exceptions_leave_no_range_open(self):
        self.record(PYTHON, self.script(self.LOOP + """
for wrong in (lambda: model(torch.ones(2, 5)), lambda: torch.ones(1).sum().backward(), lambda: torch.save(1, "/no/x")):
    try:
        wrong()
    except Exception:
        pass
def closure():
    raise KeyError
try:
    optimizer.step(closure)
except KeyError:
    pass
for _ in range(2):
    step()
"""))
        rows = [row for row in self.events() if row["kind"] == "slice"]
        self.assertTrue(all(int(row["depth"]) <= 1 for row in rows), rows)
        self.assertGreaterEqual(sum(row["name"] == "iteration" for row in rows), 5)

    def test_hooks_of_the_script_several_loaders_and_threads(self):
        ended = self.record(PYTHON, self.script("""
import threading
import torch
from torch.utils.data import DataLoader, IterableDataset, TensorDataset
calls = []
real = torch.nn.Module.__call__
def theirs(self, *args, **kwargs):
    calls.append(type(self).__name__)
    return real(self, *args, **kwargs)
torch.nn.Module.__call__ = theirs
model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 1))
model[0].register_forward_hook(lambda module, given, made: made * 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
class Endless(IterableDataset):
    def __iter__(self):
        while True:
            yield torch.ones(4)
first = iter(DataLoader(TensorDataset(torch.ones(64, 4)), 8))
second = iter(DataLoader(Endless(), 8))  # never exhausted
def infer():
    for _ in range(20):
        with torch.no_grad():
            model(torch.ones(1, 4))
thread = threading.Thread(target=infer)
thread.start()
for _ in range(8):
    (image,), other = next(first), next(second)
    optimizer.zero_grad()
    (model(image) + model(other)).sum().backward()
    model[1](model[0](image))
    optimizer.step()
thread.join()
print(len(calls) >= 8 * 8)
"""))
        self.assert_nothing_said(ended)
        self.assertEqual(ended.stdout, "True\n")
        self.assertIn("iteration", self.names())
        main = [row for row in self.events() if row["name"] == "iteration"]
        self.assertEqual({row["track"] for row in main}, {"main thread"})

    def test_a_fork_after_the_import_trains_for_itself(self):
        self.record(PYTHON, self.script("""
import multiprocessing, os
import torch
def train(rank):
    os.environ.update(RANK=str(rank), WORLD_SIZE="2")
    torch.set_num_threads(1)
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(4):
        model(torch.ones(2, 4)).sum().backward()
        optimizer.step()
context = multiprocessing.get_context("fork")
started = [context.Process(target=train, args=(rank,)) for rank in range(2)]
[process.start() for process in started]
[process.join() for process in started]
"""))
        rows = [row for row in self.events() if row["name"] == "iteration"]
        self.assertEqual(sorted(row["rank"] for row in rows), ["0"] * 4 + ["1"] * 4)

    def test_gradient_accumulation_and_two_optimizers(self):
        self.record(PYTHON, self.script("""
import torch
models = [torch.nn.Linear(4, 4), torch.nn.Linear(4, 1)]
optimizers = [torch.optim.SGD(model.parameters(), lr=0.1) for model in models]
for _ in range(5):
    for _ in range(3):
        models[0](torch.ones(2, 4)).sum().backward()
    optimizers[0].step()
    models[1](torch.ones(2, 4)).sum().backward()
    optimizers[1].step()
    for optimizer in optimizers:
        optimizer.zero_grad()
"""))
        names = self.names()
        self.assertEqual(names.count("iteration"), 5)
        self.assertEqual(names.count("backward"), 20)
        self.assertEqual(names.count("optimizer"), 10)

    def test_an_evaluation_between_two_batches_and_clipping(self):
        self.record(PYTHON, self.script("""
import torch
from torch.utils.data import DataLoader, TensorDataset
model, average = torch.nn.Linear(4, 1), torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for number, (image,) in enumerate(DataLoader(TensorDataset(torch.ones(32, 4)), 4)):
    model(image).sum().backward()
    model(image).mean().backward()
    if number % 2 == 1:
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1)
        optimizer.step()
        average.eval()
        with torch.no_grad():
            average(image)
"""))
        events = self.events()
        names = [row["name"] for row in events]
        self.assertEqual(names.count("iteration"), 4)
        self.assertEqual(names.count("optimizer"), 8)
        self.assertEqual(names.count("evaluate"), 4)
        # All batches are in iterations. The loader then has no more.
        self.assertEqual([row["depth"] for row in events if row["name"] == "preprocess"], ["1"] * 8 + ["0"])
        config = self.report()["runs"][0]["config"]
        self.assertEqual((config["accumulate"], config["global_batch"]), (2, 8))

    def test_an_evaluation_of_a_model_of_transformers_5(self):
        package = self.folder / "transformers"
        package.mkdir()
        (package / "__init__.py").touch()
        (package / "modeling_utils.py").write_text("""
import torch
class PreTrainedModel(torch.nn.Sequential):
    def eval(self):
        return self.train(False)
""")
        self.record(PYTHON, self.script("""
import torch
from torch.utils.data import DataLoader, TensorDataset
from transformers.modeling_utils import PreTrainedModel
model = PreTrainedModel(torch.nn.Linear(4, 4), torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
data = TensorDataset(torch.ones(16, 4))
for _ in range(2):
    model.train()
    for (image,) in DataLoader(data, 4):
        model(image).sum().backward()
        optimizer.step()
    model.eval()
    for (image,) in DataLoader(data, 8):
        with torch.no_grad():
            model(image)
"""))
        events = self.events()
        names = [row["name"] for row in events]
        self.assertEqual((names.count("iteration"), names.count("forward"), names.count("evaluate")), (8, 8, 4))
        depths = [row["depth"] for row in events if row["name"] == "preprocess"]
        self.assertEqual(depths, (["1"] * 4 + ["0"] * 4) * 2)

    def test_a_trace_of_a_module_is_made_as_without_the_recorder(self):
        program = self.script("""
import torch
torch.manual_seed(1)
model = torch.nn.Sequential(torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU()), torch.nn.Linear(4, 1))
print(torch.jit.trace(model, torch.ones(1, 4)).inlined_graph)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    loss = model(torch.ones(8, 4)).sum()
    loss.backward()
    optimizer.step()
print(loss.item())
""")
        alone = self.run_program(PYTHON, program)
        for mode in ("--pytorch", "--pytorch=modules"):
            recorded = self.record(PYTHON, program, mode=mode)
            self.assertEqual((recorded.stdout, recorded.stderr), (alone.stdout, alone.stderr))
            names = self.names()
            self.assertEqual((names.count("iteration"), names.count("forward")), (3, 3))
            self.assertEqual(self.report()["runs"][0]["config"]["batch_per_rank"], 8)
            shutil.rmtree(self.folder / "run")

    def test_a_home_that_cannot_be_written(self):
        home = self.folder / "home"
        home.mkdir(mode=0o555)
        ended = self.record(PYTHON, self.script(self.LOOP), HOME=str(home), PYTHONPATH="/a folder/that is not there")
        self.assert_nothing_said(ended)
        self.assertEqual(self.names().count("iteration"), 3)

    def test_a_torch_of_an_unknown_kind_is_said_in_one_line_beside_that_of_the_empty_run(self):
        package = self.folder / "torch"
        package.mkdir()
        (package / "__init__.py").write_text("__version__ = '99.0'\nimport types\nnn = types.SimpleNamespace()\n")
        ended = self.record(PYTHON, self.script("import torch; print(torch.__version__)"))
        self.assertEqual(ended.stdout, "99.0\n")
        said = re.findall("^paceline: .*", ended.stderr, re.M)
        self.assertEqual(len(said), 2, ended.stderr)
        self.assertIn("not known to this version of Paceline", said[0])
        self.assertIn("no process of the command opened a trace file", said[1])


def end_without_torch():
    if subprocess.run([PYTHON, "-c", "import torch"], stderr=subprocess.DEVNULL).returncode != 0:
        print(f"skipped: {PYTHON} has no torch")
        sys.exit(77)


if __name__ == "__main__":
    end_without_torch()
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
