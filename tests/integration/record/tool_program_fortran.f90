! SPDX-License-Identifier: Apache-2.0
! As tool_program.c, with mpif.h and with the module mpi_f08.
subroutine with_module
  use mpi_f08
  integer :: mine, sum, step
  mine = 1
  do step = 1, 10
    call MPI_Allreduce(mine, sum, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
  end do
end subroutine

program main
  implicit none
  include 'mpif.h'
  integer :: mine, sum, step, error
  call MPI_Init(error)
  mine = 1
  do step = 1, 20
    call MPI_Allreduce(mine, sum, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)
    call MPI_Bcast(mine, 1, MPI_INTEGER, 0, MPI_COMM_WORLD, error)
  end do
  call with_module
  call MPI_Finalize(error)
end program
