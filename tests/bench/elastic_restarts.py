#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: elastic_restarts.py PACELINE PYTHON [RUNS]

Runs jobs of torchrun in whose first attempt rank 1 raises an exception, or is killed, alone and recorded: how many end well after
the restart, and how many of the second attempt's 40 iterations the trace has. PYTHON has a current torch.
"""
import os
import pathlib
import subprocess
import sys
import tempfile


def train(how):
    import torch
    from torch import distributed, nn
    distributed.init_process_group("gloo")
    rank, is_first = distributed.get_rank(), os.environ["TORCHELASTIC_RESTART_COUNT"] == "0"
    model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 10)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    images = torch.utils.data.TensorDataset(torch.randn(640, 64), torch.randint(0, 10, (640,)))
    for step, (image, label) in enumerate(torch.utils.data.DataLoader(images, batch_size=32)):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(image), label).backward()
        optimizer.step()
        if is_first and rank == 1 and step == 10:
            if how == "killed":
                os.kill(os.getpid(), 9)
            raise RuntimeError("injected")
    distributed.destroy_process_group()


def main():
    paceline, python, runs = sys.argv[1], sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 20
    # Since 2.15, a restarted attempt of gloo finds the addresses of the one before it in torchrun's store, and hangs or fails.
    environment = os.environ | {"GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1", "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
    for how in ("raises", "killed"):
        for recorded in (False, True):
            well, iterations = 0, []
            for _ in range(runs):
                with tempfile.TemporaryDirectory() as folder:
                    job = [python, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "--max-restarts", "2",
                           str(pathlib.Path(__file__).resolve()), how]
                    record = [paceline, "record", "-o", folder, "--pytorch", "--"] if recorded else []
                    done = subprocess.run(record + job, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                    well += done.returncode == 0
                    if recorded:
                        count = subprocess.run([paceline, "query", "--format", "csv", folder,
                                                "SELECT COUNT(*) AS n FROM iterations WHERE finished = 1"], check=True,
                                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout.split()[-1]
                        iterations.append(int(count))
            print(f"rank 1 {how}, {'recorded' if recorded else 'alone'}: {well} of {runs} ended well",
                  f"iterations {min(iterations)} to {max(iterations)}" if recorded else "", flush=True)


if __name__ == "__main__":
    if "TORCHELASTIC_RESTART_COUNT" in os.environ:
        train(sys.argv[1])
    else:
        main()
