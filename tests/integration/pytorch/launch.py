#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: launch.py [--fork] RANKS SCRIPT [ARGUMENT…]

Starts a script once for each rank, as torchrun does. Debian 12's torchrun does not work with its Python. When a rank
fails, the others are ended. SIGABRT makes every rank print where it is. With --fork the ranks are copies of this process, which
has imported torch for all of them.
"""
import importlib
import os
import random
import runpy
import signal
import socket
import subprocess
import sys
import time


def free_port():
    """A port below the range from which the system takes the ports of outgoing connections.

    A port of that range may be taken by another program before rank 0 listens on it, or by the rank that connects to it:
    TCP lets a connection from a port to itself succeed, and then all ranks wait for ever.
    """
    while True:
        port = random.randrange(20000, 32000)
        with socket.socket() as tried:
            try:
                tried.bind(("127.0.0.1", port))
                return port
            except OSError:
                pass


class Forked:
    """A rank that is a copy of this process, with the methods of Popen."""

    def __init__(self, pid):
        self.pid, self.returncode = pid, None

    def poll(self, options=os.WNOHANG):
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, options)
            self.returncode = os.waitstatus_to_exitcode(status) if pid else None
        return self.returncode

    def wait(self):
        return self.poll(0)

    def send_signal(self, number):
        os.kill(self.pid, number)

    def terminate(self):
        self.send_signal(signal.SIGTERM)


def start(rank, ranks, port, is_forked):
    variables = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": ranks, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port,
                 "OMP_NUM_THREADS": 1, "PYTHONFAULTHANDLER": 1}
    environment = {name: str(value) for name, value in variables.items()}
    if not is_forked:
        return subprocess.Popen([sys.executable, *sys.argv[2:]], env=dict(os.environ, **environment))
    pid = os.fork()
    if pid:
        return Forked(pid)
    os.environ.update(environment)
    sys.argv[:] = sys.argv[2:]
    sys.path[0] = os.path.dirname(sys.argv[0])
    runpy.run_path(sys.argv[0], run_name="__main__")
    sys.exit(0)


def main():
    is_forked = sys.argv[1] == "--fork"
    if is_forked:
        del sys.argv[1]
        importlib.import_module("torch._dynamo")  # what takes long
    ranks = int(sys.argv[1])
    port = free_port()
    started = [start(rank, ranks, port, is_forked) for rank in range(ranks)]
    signal.signal(signal.SIGABRT, lambda *_: [process.send_signal(signal.SIGABRT) for process in started])
    while None in [process.poll() for process in started] and not any(process.returncode for process in started):
        time.sleep(0.01)
    for rank, process in enumerate(started):
        if process.returncode:
            print(f"launch.py: rank {rank} ended with status {process.returncode}", file=sys.stderr)
        elif process.returncode is None:
            process.terminate()
    sys.exit(max(abs(process.wait()) for process in started))


if __name__ == "__main__":
    main()
