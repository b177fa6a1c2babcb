! Fortran's bindings call the library below the C functions: they are recorded on their own.
program collectives
  use mpi_f08
  implicit none
  integer :: rank, values(4), sums(4)
  type(MPI_Comm) :: half
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  values = rank
  call MPI_Allreduce(values, sums, 4, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
  call MPI_Comm_split(MPI_COMM_WORLD, 0, rank, half)
  call MPI_Allreduce(MPI_IN_PLACE, sums, 4, MPI_INTEGER, MPI_SUM, half)
  call MPI_Comm_free(half)
  call MPI_Finalize()
  if (any(sums /= 2)) stop 1
end program
