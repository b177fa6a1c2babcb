! SPDX-License-Identifier: Apache-2.0
! The same calls as in collectives.f90, by the interface of mpif.h and of the module mpi.
program collectives
  implicit none
  include 'mpif.h'
  integer :: rank, values(4), sums(4), half, twin, requests(2), file, outcount, indices(2), done, error
  integer(MPI_OFFSET_KIND) :: offset
  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  values = rank
  call MPI_Allreduce(values, sums, 4, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)
  call MPI_Comm_split(MPI_COMM_WORLD, 0, rank, half, error)
  call MPI_Allreduce(MPI_IN_PLACE, sums, 4, MPI_INTEGER, MPI_SUM, half, error)
  call MPI_Pcontrol(0)
  call MPI_Barrier(half, error)
  call MPI_Pcontrol(1)
  call MPI_Comm_free(half, error)
  call MPI_Comm_idup(MPI_COMM_WORLD, twin, requests(1), error)
  call MPI_Wait(requests(1), MPI_STATUS_IGNORE, error)
  call MPI_Barrier(twin, error)
  call MPI_Irecv(values, 3, MPI_INTEGER, 1 - rank, 5, MPI_COMM_WORLD, requests(1), error)
  call MPI_Isend(sums, 3, MPI_INTEGER, 1 - rank, 5, MPI_COMM_WORLD, requests(2), error)
  done = 0
  do while (done < 2)
    call MPI_Waitsome(2, requests, outcount, indices, MPI_STATUSES_IGNORE, error)
    done = done + outcount
  end do
  offset = 16 * rank
  call MPI_File_open(MPI_COMM_WORLD, 'sums.bin  ', MPI_MODE_CREATE + MPI_MODE_RDWR, MPI_INFO_NULL, file, error)
  call MPI_File_write_at_all(file, offset, sums, 4, MPI_INTEGER, MPI_STATUS_IGNORE, error)
  call MPI_File_close(file, error)
  call MPI_Finalize(error)
  if (any(sums /= 2)) stop 1
end program
