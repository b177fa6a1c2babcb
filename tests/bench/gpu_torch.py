#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The trainer against PyTorch on one GPU: synthetic data, in turns in one run, medians, ratios.

usage: gpu_torch.py --train PACELINE-TRAIN [--rounds 5] [--iterations 60] [--case NAME …] [--output FILE.json]

PyTorch runs eagerly with torch.autocast, channels_last, cudnn.benchmark and fused SGD, from a batch that lies on the GPU;
the trainer runs as a user runs it, with its loader. A step's time is the median over the iterations of a round after a
warm-up; a case's ratio is the median over the rounds of PyTorch's time ÷ the trainer's: above 1 the trainer is faster.

Beside each: model FLOP/s as a share of the GPU's (2 × multiply-adds of convolutions and linear layers, × 3, less the
stem's data gradient; the GPU's is what its data sheet says of dense 16-bit matrix products, else what a large product
reached here), and bytes/s if each layer read its input and wrote its output once in forward and twice in backward.

Status: 0 all cases reach their limits, 1 one does not, 2 wrong usage or no GPU, 4 PyTorch is not installed.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

try:
    import torch
    from torch import nn
except ImportError:
    print("gpu_torch.py: PyTorch is not installed", file=sys.stderr)
    sys.exit(4)

# name, model, type, batch, further options of the trainer, least ratio, goal
CASES = [
    ("resnet50-bf16", "resnet50", "bf16", 256, [], 1.00, 1.1),
    ("resnet50-fp16", "resnet50", "f16", 256, [], 1.15, 1.4),
    ("resnet50-fp16-separate", "resnet50", "f16", 256, ["--no-fusion"], 1.00, 1.1),
    ("resnet50-small", "resnet50", "bf16", 16, ["--cuda-graphs"], 1.30, 2.0),
    ("vgg16-bf16", "vgg16", "bf16", 128, [], 0.97, 1.05),
]
SIZE, CLASSES, WARM_UP = 224, 256, 30
DENSE_16_BIT = {"H200": 989.4e12, "H100": 989.4e12, "A100": 312e12, "L40": 181e12}  # NVIDIA's data sheets, SXM


class Bottleneck(nn.Module):  # v1.5: the stride is in the 3×3 convolution
    def __init__(self, inputs, width, stride):
        super().__init__()
        self.main = nn.Sequential(
            nn.Conv2d(inputs, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
            nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
            nn.Conv2d(width, 4 * width, 1, bias=False), nn.BatchNorm2d(4 * width))
        self.short = nn.Identity()
        if stride != 1 or inputs != 4 * width:
            self.short = nn.Sequential(nn.Conv2d(inputs, 4 * width, 1, stride, bias=False), nn.BatchNorm2d(4 * width))
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        return self.relu(self.main(x) + self.short(x))


def resnet50():
    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    inputs = 64
    for blocks, width, stride in ((3, 64, 1), (4, 128, 2), (6, 256, 2), (3, 512, 2)):
        for block in range(blocks):
            layers.append(Bottleneck(inputs, width, stride if block == 0 else 1))
            inputs = 4 * width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, CLASSES))


def vgg16():
    layers, inputs = [], 3
    for width in (64, 64, 0, 128, 128, 0, 256, 256, 256, 0, 512, 512, 512, 0, 512, 512, 512, 0):
        if width == 0:
            layers.append(nn.MaxPool2d(2))
        else:
            layers += [nn.Conv2d(inputs, width, 3, padding=1), nn.ReLU(inplace=True)]
            inputs = width
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(512 * 49, 4096), nn.ReLU(True), nn.Dropout(),
                         nn.Linear(4096, 4096), nn.ReLU(True), nn.Dropout(), nn.Linear(4096, CLASSES))


MODELS = {"resnet50": resnet50, "vgg16": vgg16}


def work_of(model):
    """Training FLOP and bytes (2 a number) of one image."""
    flop = bytes_moved = stem = 0.0

    def count(module, inputs, output):
        nonlocal flop, bytes_moved, stem
        bytes_moved += 3 * 2 * (inputs[0].numel() + output.numel())
        if isinstance(module, nn.Conv2d):
            one = 2.0 * output.numel() * module.weight[0].numel()
        elif isinstance(module, nn.Linear):
            one = 2.0 * module.weight.numel()
        else:
            return
        stem = stem or one
        flop += one

    leaves = [module for module in model.modules() if not list(module.children())]
    hooks = [module.register_forward_hook(count) for module in leaves]
    model.eval()
    with torch.no_grad():
        model(torch.zeros(1, 3, SIZE, SIZE))
    for hook in hooks:
        hook.remove()
    return 3 * flop - stem, bytes_moved


def torch_step(name, dtype, batch, iterations):
    torch.backends.cudnn.benchmark = True
    torch.manual_seed(1)
    model = MODELS[name]().cuda().to(memory_format=torch.channels_last).train()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9, weight_decay=1e-4, fused=True)
    images = torch.randn(batch, 3, SIZE, SIZE, device="cuda").to(memory_format=torch.channels_last)
    labels = torch.randint(CLASSES, (batch,), device="cuda")
    half = torch.bfloat16 if dtype == "bf16" else torch.float16
    scaler = torch.amp.GradScaler("cuda", enabled=dtype == "f16")
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(WARM_UP + iterations + 1)]
    marks[0].record()
    for iteration in range(WARM_UP + iterations):
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", half):
            loss = nn.functional.cross_entropy(model(images), labels)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        marks[iteration + 1].record()
    torch.cuda.synchronize()
    times = [a.elapsed_time(b) * 1e-3 for a, b in zip(marks[WARM_UP:], marks[WARM_UP + 1:])]
    del model, optimizer, images
    torch.cuda.empty_cache()
    return statistics.median(times)


def trainer_command(program, name, dtype, batch, options, iterations, log):
    return [program, "--device", "cuda", "--model", name, "--dtype", dtype, "--synthetic", "--image-size", str(SIZE),
            "--classes", str(CLASSES), "--batch-size", str(batch), "--train-images", str(4 * batch), "--test-images", "8",
            "--iterations", str(WARM_UP + iterations), "--eval-every", "0", "--lr", "0.001", "--log", str(log), *options]


def trainer_step(*command):
    with tempfile.TemporaryDirectory() as folder:
        log = pathlib.Path(folder) / "log.jsonl"
        ended = subprocess.run(trainer_command(*command, log), capture_output=True, text=True)
        if ended.returncode != 0:
            raise SystemExit(f"gpu_torch.py: {ended.stderr.strip() or ended.stdout.strip()}")
        lines = [json.loads(line) for line in log.read_text().splitlines()]
    seconds = [line["seconds"] for line in lines if line["event"] == "iteration"]
    return statistics.median(seconds[WARM_UP:])


def peak_of_gpu(name):
    for part, peak in DENSE_16_BIT.items():
        if part in name:
            return peak, "data sheet"
    a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    for _ in range(5):
        a @ a
    begin.record()
    for _ in range(20):
        a @ a
    end.record()
    torch.cuda.synchronize()
    return 20 * 2 * 8192**3 / (begin.elapsed_time(end) * 1e-3), "largest matrix product here"


def measure(case, arguments, peak):
    name, model, dtype, batch, options, least, goal = case
    rounds = []
    for _ in range(arguments.rounds):
        theirs = torch_step(model, dtype, batch, arguments.iterations)
        ours = trainer_step(arguments.train, model, dtype, batch, options, arguments.iterations)
        rounds.append((theirs, ours))
    ratios = [theirs / ours for theirs, ours in rounds]
    ratio, ours = statistics.median(ratios), statistics.median(step for _, step in rounds)
    flop, moved = work_of(MODELS[model]())
    images = batch / ours
    text = (f"{ratio:.3f} × PyTorch ({min(ratios):.3f} to {max(ratios):.3f} of {len(ratios)} rounds; at least {least}, goal "
            f"{goal}), {images:.0f} images/s, {images * flop / peak:.1%} of the GPU's FLOP/s, {images * moved:.3g} bytes/s")
    print(f"{name}: {text}", flush=True)
    return {"name": name, "model": model, "dtype": dtype, "batch": batch, "ratio": ratio, "ratios": ratios, "least": least,
            "goal": goal, "images_per_s": images, "flop_per_image": flop, "mfu": images * flop / peak,
            "bytes_per_s": images * moved, "torch_step_s": [r[0] for r in rounds], "step_s": [r[1] for r in rounds],
            "reached": ratio >= least, "text": text}


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--train", required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--iterations", type=int, default=60)
    parser.add_argument("--case", action="append", choices=[case[0] for case in CASES])
    parser.add_argument("--output")
    arguments = parser.parse_args()
    cases = [case for case in CASES if not arguments.case or case[0] in arguments.case]
    if not torch.cuda.is_available():
        # The trainer says why, and that its options are right is seen on the way.
        for name, model, dtype, batch, options, *_ in cases:
            command = trainer_command(arguments.train, model, dtype, batch, options, 1, "/dev/null")
            ended = subprocess.run(command, capture_output=True, text=True)
            print(ended.stderr.strip() or f"{name}: {ended.stdout.strip()}", file=sys.stderr)
            if "no GPU can be used" not in ended.stderr:
                return 1
        return 2
    gpu = torch.cuda.get_device_name()
    peak, source = peak_of_gpu(gpu)
    figures = {"gpu": gpu, "torch": torch.__version__, "cudnn": torch.backends.cudnn.version(), "peak_flop_per_s": peak,
               "peak_source": source, "cases": [measure(case, arguments, peak) for case in cases]}
    if arguments.output:
        pathlib.Path(arguments.output).write_text(json.dumps(figures, indent=1) + "\n")
    return 0 if all(case["reached"] for case in figures["cases"]) else 1


if __name__ == "__main__":
    sys.exit(main())
