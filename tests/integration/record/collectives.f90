! SPDX-License-Identifier: Apache-2.0
! Fortran's bindings call the library below the C functions: they are recorded on their own.
program collectives
  use mpi_f08
  implicit none
  integer :: rank, values(4), sums(4)
  type(MPI_Comm) :: half, twin
  type(MPI_Request) :: requests(2)
  type(MPI_File) :: file
  integer :: outcount, indices(2), done
  integer(MPI_OFFSET_KIND) :: offset
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  values = rank
  call MPI_Allreduce(values, sums, 4, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
  call MPI_Comm_split(MPI_COMM_WORLD, 0, rank, half)
  call MPI_Allreduce(MPI_IN_PLACE, sums, 4, MPI_INTEGER, MPI_SUM, half)
  call MPI_Pcontrol(0)
  call MPI_Barrier(half)
  call MPI_Pcontrol(1)
  call MPI_Comm_free(half)
  call MPI_Comm_idup(MPI_COMM_WORLD, twin, requests(1))
  call MPI_Wait(requests(1), MPI_STATUS_IGNORE)
  call MPI_Barrier(twin)
  call MPI_Irecv(values, 3, MPI_INTEGER, 1 - rank, 5, MPI_COMM_WORLD, requests(1))
  call MPI_Isend(sums, 3, MPI_INTEGER, 1 - rank, 5, MPI_COMM_WORLD, requests(2))
  done = 0
  do while (done < 2)
    call MPI_Waitsome(2, requests, outcount, indices, MPI_STATUSES_IGNORE)
    done = done + outcount
  end do
  offset = 16 * rank
  call MPI_File_open(MPI_COMM_WORLD, 'sums.bin  ', MPI_MODE_CREATE + MPI_MODE_RDWR, MPI_INFO_NULL, file)
  call MPI_File_write_at_all(file, offset, sums, 4, MPI_INTEGER, MPI_STATUS_IGNORE)
  call MPI_File_close(file)
  call MPI_Finalize()
  if (any(sums /= 2)) stop 1
end program
