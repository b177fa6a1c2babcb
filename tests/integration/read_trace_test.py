# SPDX-License-Identifier: Apache-2.0
"""usage: read_trace_test.py PROGRAM: the traces that PROGRAM (write_traces) makes hold for the independent reader what
went into them."""
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from read_trace import SLOT, WITH_BYTES, Trace


def slots_of(event):
    """The event as slots again."""
    extension = event.extension_slots()
    if event.name in WITH_BYTES:
        padded = event.text.ljust(16 * extension, b"\0")
        return [[event.ticks << 8 | event.type, event.words[0]]] + [list(slot) for slot in SLOT.iter_unpack(padded)]
    words = event.words[: 1 + 2 * extension]
    return [[event.ticks << 8 | event.type, words[0]]] + [words[i : i + 2] for i in range(1, len(words), 2)]


class SlotsOnly(Trace):
    """Random names are not to be resolved."""

    def collect_definitions(self):
        pass


with tempfile.TemporaryDirectory() as directory:
    subprocess.run([sys.argv[1], directory], check=True)
    for ending in ("closed", "killed"):
        path = Path(directory) / f"{ending}-slots"
        trace, expected = SlotsOnly(f"{path}.pace"), json.loads(path.with_suffix(".json").read_text())
        assert trace.header["closed"] == (ending == "closed")
        assert list(trace.tracks) == [track["id"] for track in expected]
        for track in expected:
            assert trace.thread_ids[track["id"]] == track["thread_id"]
            assert [slot for event in trace.tracks[track["id"]] for slot in slots_of(event)] == track["slots"]

        path = Path(directory) / f"{ending}-ranges"
        trace, expected = Trace(f"{path}.pace"), json.loads(path.with_suffix(".json").read_text())
        assert trace.text == {"host": 'node "7"', "set": {"model": "resnet18"}}
        assert trace.header["rank"] == 1 and trace.header["world_size"] == 2 and trace.header["local_rank"] == -1
        assert trace.header["start_utc_ns"] == 1_700_000_000_000_000_000
        ranges = [list(range) for range in trace.ranges()]
        assert len(ranges) == 9001
        assert ranges == expected

# What the recorder wrote before version 2 stays readable.
data = Path(__file__).parent.parent / "data" / "format-1"
closed, killed = SlotsOnly(data / "closed.pace"), SlotsOnly(data / "killed.pace")
assert closed.header["version"] == killed.header["version"] == 1
assert len(closed.tracks[0]) > 4000
assert [slots_of(event) for event in closed.tracks[0]] == [slots_of(event) for event in killed.tracks[0]]
print("the independent reader agrees")
