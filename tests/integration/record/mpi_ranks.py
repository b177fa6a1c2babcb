# SPDX-License-Identifier: Apache-2.0
# A Python program with MPI. It knows nothing of Paceline.
import array

from mpi4py import MPI

world = MPI.COMM_WORLD
gradient = array.array("d", [1.0] * 1000)
total = array.array("d", [0.0] * 1000)
for _ in range(20):
    world.Allreduce(gradient, total)
half = world.Split(0, world.rank)
half.Barrier()
half.Free()
own = world.Split(world.rank % 2, world.rank)
own.Allreduce(gradient, total)
world.Allreduce(gradient, total)
request = world.Iallreduce(MPI.IN_PLACE, total)
request.Wait()
request = world.Ireduce(gradient, total if world.rank == 1 else None, root=1)
while not request.Test():
    pass
file = MPI.File.Open(world, "gradients.bin", MPI.MODE_CREATE | MPI.MODE_RDWR)
file.Write_at_all(world.rank * 8000, gradient)
file.Read_at(world.rank * 8000, total)
file.Close()
if world.rank == 0:
    world.send({"answer": 42}, dest=1, tag=3)
elif world.rank == 1:
    assert world.recv(source=0, tag=3) == {"answer": 42}
assert total == gradient  # as read
