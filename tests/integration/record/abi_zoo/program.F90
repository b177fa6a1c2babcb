! The calls of program.c, from Fortran, with status 3 if it is given one: -DF08 with the module mpi_f08, -DMODULE with the module mpi, else with mpif.h.
#ifdef F08
#define HANDLE(kind) type(kind)
#else
#define HANDLE(kind) integer
#endif
program zoo
#ifdef F08
  use mpi_f08
#endif
#ifdef MODULE
  use mpi
#endif
  use, intrinsic :: iso_c_binding, only: c_char, c_int, c_null_char
  implicit none
#if !defined(F08) && !defined(MODULE)
  include 'mpif.h'
#endif
  interface
    subroutine make_ranges(name, count) bind(c)
      import :: c_char, c_int
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int), value :: count
    end subroutine
  end interface
  integer :: rank, ranks, mine, sum, other, total, next, previous, step, error
  HANDLE(MPI_Comm) :: twin
  HANDLE(MPI_Request) :: requests(2)
  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, error)
  call MPI_Comm_dup(MPI_COMM_WORLD, twin, error)
  next = mod(rank + 1, ranks)
  previous = mod(rank + ranks - 1, ranks)
  mine = rank
  do step = 1, 10
    call make_ranges('step'//c_null_char, 1)
    call MPI_Allreduce(mine, sum, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)
    call MPI_Sendrecv(mine, 1, MPI_INTEGER, next, 1, other, 1, MPI_INTEGER, previous, 1, MPI_COMM_WORLD, &
                      MPI_STATUS_IGNORE, error)
    call MPI_Irecv(other, 1, MPI_INTEGER, previous, 2, twin, requests(1), error)
    call MPI_Isend(mine, 1, MPI_INTEGER, next, 2, twin, requests(2), error)
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, error)
    if (sum /= ranks * (ranks - 1) / 2 .or. other /= previous) stop 90
  end do
  call MPI_Comm_free(twin, error)
  call MPI_Barrier(MPI_COMM_WORLD, error)
  call MPI_Reduce(rank, total, 1, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD, error)
  if (rank == 0) print '(i0, a, i0)', ranks, ' ranks, sum ', total
  call MPI_Finalize(error)
  if (command_argument_count() > 0) stop 3
end program
