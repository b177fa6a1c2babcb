#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: torchvision_test.py PACELINE-TRAIN LOG_PROBABILITIES [MODEL…]

Weights between paceline-train and PyTorch, in both directions: both give the same images the same probabilities. Without
torchvision the networks are those below, which have its names. Exit status 77 where torch is missing. By default
ResNet-18 and ResNet-50 are compared. The VGGs take 2 GB and are compared on request.
"""
import json
import pathlib
import struct
import subprocess
import sys
import tempfile

try:
    import torch
    from torch import nn
except ImportError:
    print("torch is not installed")
    sys.exit(77)
try:
    import torchvision
except ImportError:
    torchvision = None

TRAIN, LOG_PROBABILITIES = sys.argv[1:3]
CLASSES, SAMPLES = 5, 3
DTYPES = {torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16", torch.int64: "I64"}


class Block(nn.Module):
    """A block of two 3×3 convolutions, or a bottleneck with its stride in the 3×3 convolution."""

    def __init__(self, channels, width, stride, bottleneck):
        super().__init__()
        out = width * (4 if bottleneck else 1)
        shapes = [(1, width, 1), (3, width, stride), (1, out, 1)] if bottleneck else [(3, width, stride), (3, out, 1)]
        before = channels
        for number, (kernel, after, step) in enumerate(shapes, 1):
            setattr(self, f"conv{number}", nn.Conv2d(before, after, kernel, step, kernel // 2, bias=False))
            setattr(self, f"bn{number}", nn.BatchNorm2d(after))
            before = after
        self.count = len(shapes)
        self.downsample = None
        if stride != 1 or channels != out:
            self.downsample = nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x):
        y = x
        for number in range(1, self.count + 1):
            y = getattr(self, f"bn{number}")(getattr(self, f"conv{number}")(y))
            y = torch.relu(y) if number < self.count else y
        return torch.relu(y + (x if self.downsample is None else self.downsample(x)))


class ResNet(nn.Module):
    def __init__(self, bottleneck, blocks, classes):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        channels = 64
        for stage, count in enumerate(blocks):
            layer, width = [], 64 << stage
            for number in range(count):
                layer.append(Block(channels, width, 2 if stage > 0 and number == 0 else 1, bottleneck))
                channels = width * (4 if bottleneck else 1)
            setattr(self, f"layer{stage + 1}", nn.Sequential(*layer))
        self.fc = nn.Linear(channels, classes)

    def forward(self, x):
        x = nn.functional.max_pool2d(torch.relu(self.bn1(self.conv1(x))), 3, 2, 1)
        for stage in range(1, 5):
            x = getattr(self, f"layer{stage}")(x)
        return self.fc(x.mean((2, 3)))


def network(name):
    if torchvision is not None:
        return getattr(torchvision.models, name)(num_classes=CLASSES)
    return {"resnet18": lambda: ResNet(False, [2, 2, 2, 2], CLASSES),
            "resnet50": lambda: ResNet(True, [3, 4, 6, 3], CLASSES)}[name]()


def write(file, tensors):
    header, data = {}, b""
    for name, tensor in tensors.items():
        # A view of its bytes: numpy has no bfloat16.
        view = torch.int64 if tensor.dtype == torch.int64 else torch.int16 if tensor.element_size() == 2 else torch.int32
        raw = tensor.contiguous().view(view).numpy().tobytes()
        header[name] = {"dtype": DTYPES[tensor.dtype], "shape": list(tensor.shape),
                        "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    file.write_bytes(struct.pack("<Q", len(text)) + text + data)


def read(file):
    content = file.read_bytes()
    length = struct.unpack("<Q", content[:8])[0]
    tensors = {}
    for name, entry in json.loads(content[8:8 + length]).items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        dtype = next(key for key, value in DTYPES.items() if value == entry["dtype"])
        raw = bytearray(content[8 + length + begin:8 + length + end])
        tensors[name] = torch.frombuffer(raw, dtype=dtype).reshape(entry["shape"])
    return tensors


def images(size):
    numbers = torch.arange(SAMPLES * 3 * size * size, dtype=torch.int64) * 2654435761 % 2**32
    return ((numbers >> 8).to(torch.float32) * 2.0**-23 - 1).reshape(SAMPLES, 3, size, size)


def torchs(model, size):
    with torch.no_grad():
        return torch.log_softmax(model.eval()(images(size)).double(), 1)


def ours(name, size, file):
    out = subprocess.run([LOG_PROBABILITIES, name, str(size), str(CLASSES), str(SAMPLES), str(file)], check=True,
                         capture_output=True, text=True).stdout
    return torch.tensor([[float(number) for number in line.split()] for line in out.splitlines()], dtype=torch.float64)


def expect_equal(what, a, b, bound):
    difference = (a - b).abs().max().item()
    print(f"{what}: largest difference of a log probability {difference:.2g}, of values between {b.min():.2f} and "
          f"{b.max():.2f}")
    assert a.shape == b.shape and difference <= bound * (1 + b.abs().max().item()), (a, b)


def test(name, folder):
    size = 224 if name.startswith("vgg") else 72
    torch.manual_seed(1)
    model = network(name)
    for module in model.modules():  # statistics and scales that a network has after training
        if isinstance(module, nn.BatchNorm2d):
            nn.init.uniform_(module.running_mean, -0.2, 0.2)
            nn.init.uniform_(module.running_var, 0.5, 2)
            nn.init.uniform_(module.weight, 0.5, 1.5)
            nn.init.uniform_(module.bias, -0.2, 0.2)
    theirs, back = folder / "theirs.safetensors", folder / "ours.safetensors"
    write(theirs, model.state_dict())
    expected = torchs(model, size)
    expect_equal(f"{name} from PyTorch", ours(name, size, theirs), expected, 1e-5)
    for dtype, bound in ((torch.float16, 1e-3), (torch.bfloat16, 1e-2)) if name == "resnet18" else ():
        half = folder / "half.safetensors"
        write(half, {key: value.to(dtype) if value.dtype == torch.float32 else value
                     for key, value in model.state_dict().items()})
        expect_equal(f"{name} in {dtype}", ours(name, size, half), expected, bound)

    # A step changes all weights and statistics, and the file of the run is loaded by names.
    subprocess.run([TRAIN, "--synthetic", "--threads", "1", "--model", name, "--image-size", str(size), "--classes",
                    str(CLASSES), "--batch-size", "2", "--train-images", "2", "--test-images", "2", "--iterations", "1",
                    "--lr", "0.001", "--import-weights", str(theirs), "--export-weights", str(back)],
                   check=True, stdout=subprocess.DEVNULL)
    exported = read(back)
    state = model.state_dict()
    assert set(exported) == set(state), set(exported) ^ set(state)
    for key, value in exported.items():
        assert value.shape == state[key].shape and value.dtype == state[key].dtype, key
        assert not torch.equal(value, state[key]), f"{key} did not change"
    model.load_state_dict(exported, strict=True)
    expect_equal(f"{name} from paceline-train", torchs(model, size), ours(name, size, back), 1e-5)


with tempfile.TemporaryDirectory() as temporary:
    for name in sys.argv[3:] or ["resnet18", "resnet50"]:
        test(name, pathlib.Path(temporary))
