# SPDX-License-Identifier: Apache-2.0
"""usage: check_otf2.py PACELINE ANCHOR: compares what Paceline reads from an OTF2 archive with the text of otf2-print."""
import collections
import re
import shutil
import subprocess
import sys

from model import Comparison, export, sample, spans, summary

program, path = sys.argv[1], sample(sys.argv[2])
if shutil.which("otf2-print") is None:
    print("skipped: otf2-print is not there: install otf2-tools (Debian's name)")
    sys.exit(77)
rows = export(program, path)
check = Comparison()


def printed(*options):
    return subprocess.run(["otf2-print", *options, path], check=True, capture_output=True, text=True).stdout.splitlines()


clock = next(line for line in printed("-G") if line.startswith("CLOCK_PROPERTIES"))
resolution = int(re.search(r"Ticks per Seconds: (\d+)", clock).group(1))
offset = int(re.search(r"Global Offset: (\d+)", clock).group(1))


def time_ns(ticks):
    return ((ticks - offset) * 2_000_000_000 + resolution) // (2 * resolution)  # rounded


event = re.compile(r"^([A-Z_]+) +(\d+) +(\d+)  (.*)$")
open_regions, found, messages, sizes = collections.defaultdict(list), [], [], []
for line in printed():
    match = event.match(line)
    if not match:
        continue
    kind, location, ticks, rest = match.group(1), match.group(2), int(match.group(3)), match.group(4)
    if kind == "ENTER":
        open_regions[location].append((re.search(r'Region: "(.*)" <', rest).group(1), time_ns(ticks)))
    elif kind == "LEAVE":
        name, start = open_regions[location].pop()
        found.append((name, start, time_ns(ticks)))
    elif kind in ("MPI_SEND", "MPI_RECV", "MPI_ISEND", "MPI_IRECV"):
        peer, tag, size = (int(re.search(key + r": (\d+)", rest).group(1)) for key in (
            "Receiver" if kind.endswith("SEND") else "Sender", "Tag", "Length"))
        messages.append((peer, tag, size))
    elif kind == "MPI_COLLECTIVE_END":
        sizes.append(tuple(int(re.search(key + r": (\d+)", rest).group(1)) for key in ("Sent", "Received")))

slices = [row for row in rows if row["kind"] == "slice"]
check.equal("regions", summary(spans(slices)), summary((start, end) for _, start, end in found))
check.equal("calls of each region", collections.Counter(row["name"] for row in slices),
            collections.Counter(name for name, _, _ in found))
for name in sorted({name for name, _, _ in found if name.startswith("MPI_")}):
    check.equal(name, summary(spans(row for row in slices if row["name"] == name)),
                summary((start, end) for other, start, end in found if other == name))
ours = [row["args"] for row in slices if "peer" in row["args"]]
check.equal("messages", collections.Counter((of["peer"], of["tag"], of["bytes"]) for of in ours),
            collections.Counter(messages))
check.equal("bytes of messages", sum(of["bytes"] for of in ours), sum(size for _, _, size in messages))
check.equal("ranks", len({row["rank"] for row in rows}), len({line.split()[1] for line in printed("-G")
                                                               if line.startswith("LOCATION_GROUP ")}))
check.end()
