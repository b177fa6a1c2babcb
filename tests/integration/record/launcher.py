# SPDX-License-Identifier: Apache-2.0
# Starts N processes of one program, as torchrun does: launcher.py N PROGRAM ARGUMENTS…
import os
import subprocess
import sys

ranks = int(sys.argv[1])
told = {"WORLD_SIZE": str(ranks), "LOCAL_WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500",
        "TORCHELASTIC_RUN_ID": "none"}
workers = [subprocess.Popen(sys.argv[2:], env=os.environ | told | {"RANK": str(rank), "LOCAL_RANK": str(rank)})
           for rank in range(ranks)]
sys.exit(max(worker.wait() for worker in workers))
