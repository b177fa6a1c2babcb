# SPDX-License-Identifier: Apache-2.0
# usage: program.py RANGES_LIBRARY [STATUS]: the calls of program.c, by way of mpi4py.
import array
import ctypes
import sys

from mpi4py import MPI

ranges = ctypes.CDLL(sys.argv[1])
world = MPI.COMM_WORLD
rank, ranks = world.rank, world.size
twin = world.Dup()
following, previous = (rank + 1) % ranks, (rank - 1) % ranks
mine, total, other = (array.array("i", [value]) for value in (rank, 0, 0))
for _ in range(10):
    ranges.make_ranges(b"step", 1)
    world.Allreduce(mine, total)
    world.Sendrecv(mine, following, 1, other, previous, 1)
    MPI.Request.Waitall([twin.Irecv(other, previous, 2), twin.Isend(mine, following, 2)])
    assert total[0] == ranks * (ranks - 1) // 2 and other[0] == previous
twin.Free()
world.Barrier()
world.Reduce(mine, total)
if rank == 0:
    print(f"{ranks} ranks, sum {total[0]}", flush=True)
sys.exit(int(sys.argv[2]) if len(sys.argv) > 2 else 0)
