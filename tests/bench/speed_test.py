#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""speed.py's verdict, on measurements that are made up: programs that print what the real ones would."""
import contextlib
import io
import json
import os
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import speed  # noqa: E402


def stand_in(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}")
    path.chmod(0o755)


class Verdict(unittest.TestCase):
    def run_speed(self, ours, ceiling, *options):
        """Runs speed.py with the given step times, in seconds. Returns its status, output and figures."""
        with tempfile.TemporaryDirectory() as folder:
            build = pathlib.Path(folder)
            iteration = json.dumps({"event": "iteration", "seconds": ours})
            epoch = json.dumps({"event": "epoch", "test_images": 32})
            stand_in(build / "bin/paceline-train", f"""
while [ "$1" != --log ]; do shift; done
sleep 0.1
printf '%s\\n' {" ".join([f"'{iteration}'"] * 4)} >"$2"
sleep 0.1
echo '{epoch}' >>"$2"
""")
            about, step = json.dumps({"onednn": "9.8.7", "instructions": "AVX9"}), json.dumps({"seconds": [ceiling] * 3})
            stand_in(build / "tests/ceiling_bench", f"if [ $1 = about ]; then echo '{about}'; else echo '{step}'; fi\n")
            figures = build / "figures.json"
            sys.argv = ["speed.py", "--build", folder, "--only", "resnet50", "--rounds", "2", "--json", str(figures),
                        *options]
            out, error = io.StringIO(), io.StringIO()
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(error):
                try:
                    status = speed.main()
                except SystemExit as end:
                    status = end.code
            return status, out.getvalue() + error.getvalue(), json.loads(figures.read_text()) if figures.exists() else {}

    def setUp(self):
        os.environ.pop("PACELINE_TORCH_PYTHON", None)

    def test_a_ratio_below_its_target_is_a_failure_and_is_marked(self):
        status, out, figures = self.run_speed(ours=0.5, ceiling=0.4)
        self.assertEqual(status, 1)
        self.assertRegex(out, r"oneDNN ceiling +0\.80 .* 0\.92  below")
        self.assertAlmostEqual(figures["ratios"][0]["median"], 0.8)

    def test_a_ratio_at_its_target_is_none(self):
        status, out, _ = self.run_speed(ours=0.5, ceiling=0.46)
        self.assertEqual(status, 0)
        self.assertNotIn("below", out)

    def test_a_target_can_be_set(self):
        self.assertEqual(self.run_speed(0.5, 0.4, "--target", "resnet50-ceiling=0.8")[0], 0)
        self.assertEqual(self.run_speed(0.5, 0.46, "--target", "resnet50-ceiling=1.1")[0], 1)

    def test_a_target_that_is_not_known_or_no_number_is_refused(self):
        for word, says in (("resnet5=1", "no 'resnet5'; there are resnet50-ceiling"),
                           ("allreduce=fast", "'fast' is not a number")):
            status, out, _ = self.run_speed(0.5, 0.4, "--target", word)
            self.assertEqual(status, 2)
            self.assertIn(says, out)

    def test_the_processor_the_instructions_and_oneDNNs_version_are_printed(self):
        _, out, figures = self.run_speed(0.5, 0.5)
        self.assertIn(f"{speed.processor()}, {os.cpu_count()} CPUs; oneDNN 9.8.7, which may use AVX9", out)
        self.assertEqual((figures["onednn"], figures["instructions"]), ("9.8.7", "AVX9"))

    def test_every_kind_of_ratio_is_held_against_its_own_target(self):
        def case(**seconds):
            made = speed.Case("", ("", 0, 1, 1), dict.fromkeys(seconds))
            made.seconds = {name: [[value]] for name, value in seconds.items()}
            made.facts = {name: {"start_s": [value], "evaluation_images_per_s": [1 / value]}
                          for name, value in seconds.items()}
            return made

        cases = {"resnet50": case(trainer=1, ceiling=10, PyTorch=10), "vgg16": case(trainer=1, PyTorch=10),
                 "ranks": case(**{"2 ranks × 1": 1, "1 rank × 2": 10, "DDP 2 × 1": 10}),
                 "bf16": case(trainer=1, ceiling=10, PyTorch=10)}
        reduced = {2: {(25 << 20, "mpi"): 10.0, (25 << 20, "ring"): 1.0, (25 << 20, "halving_doubling"): 1.0}}
        self.assertEqual(speed.below(speed.ratios_of(cases, reduced, speed.targets_of([], "AVX2"))), [])
        for key in speed.TARGETS:
            missed = speed.below(speed.ratios_of(cases, reduced, speed.targets_of([f"{key}=11"], "AVX2")))
            self.assertEqual(len(missed), 2 if key == "allreduce" else 1, key)
        self.assertEqual(speed.below([("no number", float("nan"), 0, 0, 1)]), ["no number"])

    def test_the_targets_are_those_of_the_instruction_set(self):
        for instructions, vgg16, bf16 in (("AVX2", 1.3, 1.3), ("AVX512_CORE", 1.8, 1.3), ("AVX512_CORE_BF16", 1.8, 1.3),
                                          ("AVX512_CORE_AMX", 1.8, 2.0), ("none", 1.3, 1.3)):
            targets = speed.targets_of(["ranks-one=0.5"], instructions)
            self.assertEqual((targets["vgg16-pytorch"], targets["bf16-pytorch"], targets["ranks-one"]), (vgg16, bf16, 0.5))

    def test_the_start_up_and_the_evaluation_are_taken_from_the_times_of_the_logs_lines(self):
        def step(at, seconds):
            return at, {"event": "iteration", "seconds": seconds}

        lines = [(0.1, {"event": "start"}), step(3.0, 1.5), step(4.0, 1.0), (6.0, {"event": "epoch", "test_images": 32})]
        self.assertEqual(speed.start_and_evaluation(lines), (1.5, 16.0))
        self.assertNotEqual(speed.start_and_evaluation(lines[:3])[1], speed.start_and_evaluation(lines[:3])[1])  # NaN

    def test_the_start_up_and_the_evaluation_are_printed(self):
        _, out, figures = self.run_speed(0.05, 0.05)
        self.assertRegex(out, r"ResNet-50, trainer .* s before the first step, which takes 0\.05 s; evaluation: ")
        facts = figures["facts"]["resnet50"]["trainer"]
        self.assertEqual(len(facts["start_s"]), 2)
        self.assertGreater(min(facts["start_s"]), 0.0)
        self.assertEqual(len(facts["evaluation_images_per_s"]), 2)


if __name__ == "__main__":
    unittest.main()
