# SPDX-License-Identifier: Apache-2.0
"""usage: check_flight_recorder.py PACELINE FOLDER: Paceline's reading of Flight Recorder dumps agrees with Python's pickle
module, and its verdict names exactly the ranks that the log of the fault injection names. 77 without the folder."""
import json
import pathlib
import pickle
import re
import subprocess
import sys

program, folder = sys.argv[1], pathlib.Path(sys.argv[2])
if not folder.is_dir():
    print(f"skipped: no {folder}")
    sys.exit(77)


def run(*arguments):
    return subprocess.run([program, *arguments], check=True, capture_output=True, text=True).stdout


jobs = sorted(path.parent for path in folder.glob("*/fault_injection.log"))
assert jobs, f"no dumps in {folder}"
for job in jobs:
    source = {int(path.name.split("_")[-1]): pickle.load(path.open("rb")) for path in job.glob("_dump_*")}
    traces = json.loads(run("info", "--format", "json", str(job)))["traces"]
    assert {trace["rank"]: trace["events"]["nccl"] for trace in traces} == {
        rank: len(dump["entries"]) for rank, dump in source.items()}, job
    rows = run("query", "--format", "csv", str(job), """
        SELECT rank, start_ns, name FROM slices WHERE category IN ('collective', 'point-to-point')""").splitlines()[1:]
    zero = min(entry["time_created_ns"] for dump in source.values() for entry in dump["entries"])
    expected = sorted((rank, entry["time_created_ns"] - zero) for rank, dump in source.items() for entry in dump["entries"])
    assert sorted(tuple(map(int, row.split(",")[:2])) for row in rows) == expected, job
    faulty = sorted(map(int, re.findall(r"Rank (\d+), fault_type", (job / "fault_injection.log").read_text())))
    named = sorted(trace["rank"] for trace in traces if "fault" in trace.get("facts", {}))
    assert named == faulty, (job, named, faulty)
    verdict = json.loads(run("report", "--format", "json", str(job)))["verdict"][0]
    assert sorted(set(map(int, re.findall(r"rank (\d+) (?:never|still)", verdict)))) == faulty, verdict
    print(f"{job.name}: {len(expected)} calls of {len(source)} ranks; at fault: {faulty}")
