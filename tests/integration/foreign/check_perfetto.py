# SPDX-License-Identifier: Apache-2.0
"""usage: check_perfetto.py PACELINE FILE: Paceline's reading of a Perfetto file by PyTorch agrees with protoc's: the same slices
with the same starts and durations, but for ends that were cut because slices of one stream overlap. 77 without the file or
protoc."""
import collections
import csv
import io
import pathlib
import re
import shutil
import subprocess
import sys

program, file = sys.argv[1], pathlib.Path(sys.argv[2])
protos = pathlib.Path(__file__).parent.parent / "exports"
if not file.is_file() or shutil.which("protoc") is None:
    print(f"skipped: no {file}" if not file.is_file() else "skipped: protoc is not installed (protobuf-compiler)")
    sys.exit(77)
text = subprocess.run(["protoc", "--decode=perfetto.protos.Trace", f"-I{protos}", f"{protos}/perfetto.proto"],
                      stdin=file.open("rb"), stdout=subprocess.PIPE, check=True, text=True).stdout
theirs, opened = [], collections.defaultdict(list)
for packet in text.split("\npacket {\n"):
    if "  track_event {" not in packet:
        continue
    time = int(re.search(r"^  timestamp: (\d+)$", packet, re.M)[1])
    track = re.search(r"^    track_uuid: (\d+)$", packet, re.M)[1]
    if "    type: TYPE_SLICE_BEGIN\n" in packet:
        name, category = (re.search(rf'^    {field}: "(.*)"$', packet, re.M)[1] for field in ("name", "categories"))
        opened[track].append((time, category, name))
    else:
        start, *kind = opened[track].pop()
        theirs.append((start, *kind, time - start))
assert not any(opened.values())

read = subprocess.run([program, "query", "--format", "csv", str(file),
                       "SELECT start_ns, domain, category, name, duration_ns FROM slices"], capture_output=True, check=True, text=True)
cut = re.search(r"(\d+) slices were cut", read.stderr)
zero = min(of[0] for of in theirs)
categories = {("cuda", "kernel"): "kernel", ("cuda", "memcpy"): "gpu_memcpy", ("cuda", "memset"): "gpu_memset",
              ("cuda", "runtime"): "cuda_runtime", ("cuda", "synchronization"): "cuda_runtime", ("cuda", "overhead"): "overhead"}
ours = [(int(row["start_ns"]) + zero, categories.get((row["domain"], row["category"]), row["category"]), row["name"],
         int(row["duration_ns"])) for row in csv.DictReader(io.StringIO(read.stdout))]


def key(of):  # a copy has the kinds of memory in its arguments, and names of kernels are demangled
    return of[0], of[1], of[2].split(" (")[0] if of[1] != "kernel" else "", -of[3]


ours.sort(key=key)
theirs.sort(key=key)
assert len(ours) == len(theirs), (len(ours), len(theirs))
shorter = 0
for a, b in zip(ours, theirs):
    assert key(a)[:3] == key(b)[:3] and 0 <= b[3] - a[3] <= 1000, (a, b)
    shorter += a[3] != b[3]
assert shorter <= (int(cut[1]) if cut else 0), (shorter, cut)
totals = [collections.Counter(), collections.Counter()]
for total, slices in zip(totals, (ours, theirs)):
    for of in slices:
        total[of[1]] += of[3]
differ = {category: (totals[0][category], ns) for category, ns in totals[1].items() if totals[0][category] != ns}
assert shorter > 0 or not differ
print(f"{len(ours)} slices agree, {shorter} of them with an end cut by at most 1 µs; sums in ns that differ: {differ}")
