# SPDX-License-Identifier: Apache-2.0
# Calls of MPI by way of mpi4py. It knows nothing of Paceline.
import array
import sys
from mpi4py import MPI
world = MPI.COMM_WORLD
rank, size = world.rank, world.size
other = 1 - rank
assert world.bcast({"answer": 42} if rank == 0 else None) == {"answer": 42}
assert world.allgather(rank) == [0, 1]
ones = array.array("d", [1.0] * 1000)
got = array.array("d", [0.0] * 1000)
world.Bcast(ones)
world.Allreduce(ones, got)
assert got[0] == 2
both = array.array("d", [0.0] * 2000)
world.Allgatherv(ones, [both, [1000, 1000], [0, 1000], MPI.DOUBLE])
assert both[1999] == 1
world.Alltoallv([both, [1000, 1000], [0, 1000], MPI.DOUBLE], [both[:], [1000, 1000], [0, 1000], MPI.DOUBLE])
world.Iallreduce(ones, got).Wait()
requests = [world.Isend(ones, dest=other, tag=7), world.Irecv(got, source=other, tag=7)]
MPI.Request.Waitall(requests)
if rank == 0:
    world.Send(ones, dest=1, tag=3)
    world.send([1, 2, 3], dest=1, tag=4)
else:
    world.Recv(got, source=0, tag=3)
    assert world.recv(source=0, tag=4) == [1, 2, 3]
world.Sendrecv(ones, other, 5, got, other, 5)
half = world.Split(rank, 0)
half.Barrier()
half.Free()
window = MPI.Win.Allocate(8000, 8, comm=world)
window.Fence()
window.Put(ones, other)
window.Fence()
window.Free()
file = MPI.File.Open(world, sys.argv[1], MPI.MODE_CREATE | MPI.MODE_RDWR)
file.Write_at_all(rank * 8000, ones)
file.Read_at(rank * 8000, got)
file.Close()
print(MPI.Get_library_version()[:20], flush=True)
