#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: hangs.py PACELINE [HANG…]

Jobs of two ranks that hang, recorded with --hang 2, and what `paceline info` says from the merged stacks: DistributedDataParallel
over gloo with rank 1 in its loader, in a lock that another thread of it holds, and in an endless loop; and two ranks of MPI that
send to each other. Ends with 1 if one is not named. Run it with an interpreter that has torch and mpi4py, such as Debian's.
"""
import os
import re
import subprocess
import sys
import tempfile
import time

from mpi_environment import MPI_ENVIRONMENT

# By hang: what the sentence says.
WANTED = {
    "loader": r"rank 1 is in read \(pipe\) below .*Images\.__getitem__ \(hangs\.py:\d+\)",
    "lock": r"rank 1 is in futex below .*wait_for_lock \(hangs\.py:\d+\)",
    "loop": r"rank 1 is in .*loop_for_ever \(hangs\.py:\d+\)",
    "send": r"ranks 0 and 1 are in .*send_to_each_other \(hangs\.py:\d+\)",
}
PATIENCE_S = 60


def send_to_each_other():
    import numpy
    from mpi4py import MPI
    data = numpy.zeros(1 << 20)
    MPI.COMM_WORLD.Barrier()
    MPI.COMM_WORLD.Send(data, dest=1 - MPI.COMM_WORLD.rank)


def train(hang, rank):
    import threading

    import torch
    import torch.distributed as distributed
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", rank=rank, world_size=2, init_method=os.environ["HANG_STORE"])
    lock = threading.Lock()

    def wait_for_lock():
        held = threading.Event()
        threading.Thread(target=lambda: (lock.acquire(), held.set(), time.sleep(1000)), daemon=True).start()
        held.wait()
        with lock:
            pass

    def loop_for_ever():
        number = 0
        while True:
            number += 1

    class Images(torch.utils.data.Dataset):
        def __len__(self):
            return 800

        def __getitem__(self, index):
            if hang == "loader" and rank == 1 and index == 80:
                os.read(os.pipe()[0], 1)
            return torch.ones(8), 1

    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step, (images, labels) in enumerate(torch.utils.data.DataLoader(Images(), batch_size=8)):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()
        if rank == 1 and step == 10:
            {"lock": wait_for_lock, "loop": loop_for_ever}.get(hang, lambda: None)()


def judged(paceline, hang, folder):
    """What `paceline info` says of the stacks, and whether that names the place."""
    run = f"{folder}/run"
    command = ["mpirun", "--bind-to", "none", "-n", "2", paceline, "record", "--hang", "2", "-o", run]
    command += ["--", sys.executable, __file__, "--hang", hang] if hang == "send" else \
        ["--pytorch", "--", sys.executable, __file__, "--hang", hang]
    job = subprocess.Popen(command, env=MPI_ENVIRONMENT | {"HANG_STORE": f"file://{folder}/store", "OMP_NUM_THREADS": "1"},
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    end, said, found = time.monotonic() + PATIENCE_S, "", None
    try:
        while not found and time.monotonic() < end:
            time.sleep(1)
            said = subprocess.run([paceline, "info", run], capture_output=True, text=True).stdout
            found = re.search(WANTED[hang], said, re.IGNORECASE)
    finally:
        job.terminate()
        job.wait()
    lines = [line.strip() for line in said.splitlines() if re.search(r"[Rr]anks? .* (is|are) in |never entered| waits? ", line)]
    return lines, bool(found)


def main():
    if sys.argv[1] == "--hang":
        rank = int(os.environ["OMPI_COMM_WORLD_RANK"])
        return send_to_each_other() if sys.argv[2] == "send" else train(sys.argv[2], rank)
    paceline, right = os.path.abspath(sys.argv[1]), True
    for hang in sys.argv[2:] or WANTED:
        with tempfile.TemporaryDirectory() as folder:
            lines, is_right = judged(paceline, hang, folder)
        right = right and is_right
        print(f"{'ok' if is_right else 'WRONG'}: {hang}: " + "\n  ".join(lines), flush=True)
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
