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
if world.rank == 0:
    world.send({"answer": 42}, dest=1, tag=3)
elif world.rank == 1:
    assert world.recv(source=0, tag=3) == {"answer": 42}
assert total[0] == world.size
