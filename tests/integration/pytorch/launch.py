#!/usr/bin/env python3
"""usage: launch.py RANKS SCRIPT [ARGUMENT…]

Starts a script once for each rank, as torchrun does. Debian 12's torchrun does not work with its Python.
"""
import os
import socket
import subprocess
import sys

ranks = int(sys.argv[1])
with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
started = []
for rank in range(ranks):
    variables = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": ranks, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port,
                 "OMP_NUM_THREADS": 1}
    environment = dict(os.environ, **{name: str(value) for name, value in variables.items()})
    started.append(subprocess.Popen([sys.executable, *sys.argv[2:]], env=environment))
status = [process.wait() for process in started]
sys.exit(max(abs(code) for code in status))
