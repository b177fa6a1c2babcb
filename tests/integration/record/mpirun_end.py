# SPDX-License-Identifier: Apache-2.0
"""How tests end the mpirun of a job that does not end by itself."""
import subprocess


def end(mpirun):
    """Asks mpirun to end, and kills it after 20 s: at times PMIx 4.2 waits for a mutex of its own for ever as it ends."""
    if mpirun.poll() is None:
        mpirun.terminate()
    try:
        mpirun.wait(20)
    except subprocess.TimeoutExpired:
        mpirun.kill()
        mpirun.wait()
