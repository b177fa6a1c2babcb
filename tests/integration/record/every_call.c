// SPDX-License-Identifier: Apache-2.0
// Calls every family of MPI functions at least once, with known sizes. It knows nothing of Paceline.
#include <mpi.h>
#if MPI_VERSION < 4 && defined(OPEN_MPI)
#include <mpi-ext.h>
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WORLD MPI_COMM_WORLD
enum { most = 64 };

static int a[most], b[most], counts[most], displacements[most], ones[most];
static MPI_Datatype types[most];
static int rank, ranks, peer;

static void finish(MPI_Request request) { MPI_Wait(&request, MPI_STATUS_IGNORE); }

// The sizes: 3 ints for each rank, or rank + 1; 5 and 7 if all ranks have the same vector.
static void collectives(MPI_Comm comm) {
  MPI_Barrier(comm);
  MPI_Bcast(a, 5, MPI_INT, 1, comm);
  MPI_Gather(a, 3, MPI_INT, b, 3, MPI_INT, 0, comm);
  MPI_Gather(rank == 0 ? MPI_IN_PLACE : (void*)a, 3, rank == 0 ? MPI_DATATYPE_NULL : MPI_INT, b, 3, MPI_INT, 0, comm);
  MPI_Gatherv(a, rank + 1, MPI_INT, b, counts, displacements, MPI_INT, 0, comm);
  MPI_Scatter(b, 3, MPI_INT, a, 3, MPI_INT, 0, comm);
  MPI_Scatterv(b, counts, displacements, MPI_INT, a, rank + 1, MPI_INT, 0, comm);
  MPI_Allgather(a, 3, MPI_INT, b, 3, MPI_INT, comm);
  MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, b, 3, MPI_INT, comm);
  MPI_Allgatherv(a, rank + 1, MPI_INT, b, counts, displacements, MPI_INT, comm);
  MPI_Alltoall(a, 3, MPI_INT, b, 3, MPI_INT, comm);
  MPI_Alltoallv(a, ones, displacements, MPI_INT, b, ones, displacements, MPI_INT, comm);
  MPI_Alltoallw(a, ones, displacements, types, b, ones, displacements, types, comm);
  MPI_Allreduce(a, b, 7, MPI_INT, MPI_SUM, comm);
  MPI_Allreduce(MPI_IN_PLACE, b, 7, MPI_INT, MPI_SUM, comm);
  MPI_Reduce(a, b, 7, MPI_INT, MPI_SUM, 1, comm);
  MPI_Reduce_scatter(a, b, counts, MPI_INT, MPI_SUM, comm);
  MPI_Reduce_scatter_block(a, b, 3, MPI_INT, MPI_SUM, comm);
  MPI_Scan(a, b, 7, MPI_INT, MPI_SUM, comm);
  MPI_Exscan(a, b, 7, MPI_INT, MPI_SUM, comm);
}

static void nonblocking_collectives(MPI_Comm comm) {
  MPI_Request r;
  MPI_Ibarrier(comm, &r), finish(r);
  MPI_Ibcast(a, 5, MPI_INT, 1, comm, &r), finish(r);
  MPI_Igather(a, 3, MPI_INT, b, 3, MPI_INT, 0, comm, &r), finish(r);
  MPI_Igatherv(a, rank + 1, MPI_INT, b, counts, displacements, MPI_INT, 0, comm, &r), finish(r);
  MPI_Iscatter(b, 3, MPI_INT, a, 3, MPI_INT, 0, comm, &r), finish(r);
  MPI_Iscatterv(b, counts, displacements, MPI_INT, a, rank + 1, MPI_INT, 0, comm, &r), finish(r);
  MPI_Iallgather(a, 3, MPI_INT, b, 3, MPI_INT, comm, &r), finish(r);
  MPI_Iallgatherv(a, rank + 1, MPI_INT, b, counts, displacements, MPI_INT, comm, &r), finish(r);
  MPI_Ialltoall(a, 3, MPI_INT, b, 3, MPI_INT, comm, &r), finish(r);
  MPI_Ialltoallv(a, ones, displacements, MPI_INT, b, ones, displacements, MPI_INT, comm, &r), finish(r);
  MPI_Ialltoallw(a, ones, displacements, types, b, ones, displacements, types, comm, &r), finish(r);
  MPI_Iallreduce(a, b, 7, MPI_INT, MPI_SUM, comm, &r), finish(r);
  MPI_Ireduce(a, b, 7, MPI_INT, MPI_SUM, 1, comm, &r), finish(r);
  MPI_Ireduce_scatter(a, b, counts, MPI_INT, MPI_SUM, comm, &r), finish(r);
  MPI_Ireduce_scatter_block(a, b, 3, MPI_INT, MPI_SUM, comm, &r), finish(r);
  MPI_Iscan(a, b, 7, MPI_INT, MPI_SUM, comm, &r), finish(r);
  MPI_Iexscan(a, b, 7, MPI_INT, MPI_SUM, comm, &r), finish(r);
}

// A rank of the ring has two neighbours and sends 3 ints, or 2, to each.
static void neighbors(void) {
  MPI_Comm ring, graph;
  MPI_Request r;
  const int periodic = 1, two[2] = {2, 2}, at[2] = {0, 4}, size = ranks;
  const MPI_Aint bytes[2] = {0, 16};
  MPI_Cart_create(WORLD, 1, &size, &periodic, 0, &ring);
  MPI_Neighbor_allgather(a, 3, MPI_INT, b, 3, MPI_INT, ring);
  MPI_Neighbor_alltoall(a, 3, MPI_INT, b, 3, MPI_INT, ring);
  MPI_Neighbor_allgatherv(a, 2, MPI_INT, b, two, at, MPI_INT, ring);
  MPI_Neighbor_alltoallv(a, two, at, MPI_INT, b, two, at, MPI_INT, ring);
  MPI_Neighbor_alltoallw(a, two, bytes, types, b, two, bytes, types, ring);
  MPI_Ineighbor_allgather(a, 3, MPI_INT, b, 3, MPI_INT, ring, &r), finish(r);
  MPI_Ineighbor_alltoall(a, 3, MPI_INT, b, 3, MPI_INT, ring, &r), finish(r);
  MPI_Ineighbor_allgatherv(a, 2, MPI_INT, b, two, at, MPI_INT, ring, &r), finish(r);
  MPI_Ineighbor_alltoallv(a, two, at, MPI_INT, b, two, at, MPI_INT, ring, &r), finish(r);
  MPI_Ineighbor_alltoallw(a, two, bytes, types, b, two, bytes, types, ring, &r), finish(r);
  MPI_Comm_free(&ring);
  // Everyone sends to the next one only.
  const int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
  MPI_Dist_graph_create_adjacent(WORLD, 1, &before, ones, 1, &next, ones, MPI_INFO_NULL, 0, &graph);
  MPI_Neighbor_alltoall(a, 3, MPI_INT, b, 3, MPI_INT, graph);
  MPI_Comm_free(&graph);
}

// Ranks 0 and 1.
static void messages(void) {
  MPI_Request r[4];
  int index, flag = 0, done, indices[4];
  if (peer == MPI_PROC_NULL) {  // the other ranks have no peer
    MPI_Send(a, 3, MPI_INT, MPI_PROC_NULL, 7, WORLD);
    return;
  }
  if (rank == 0) MPI_Send(a, 11, MPI_INT, 1, 7, WORLD);
  if (rank == 1) MPI_Recv(b, 11, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, WORLD, MPI_STATUS_IGNORE);
  MPI_Sendrecv(a, 3, MPI_INT, peer, 8, b, 3, MPI_INT, peer, 8, WORLD, MPI_STATUS_IGNORE);
  MPI_Isend(a, 3, MPI_INT, peer, 9, WORLD, &r[0]);
  MPI_Irecv(b, 3, MPI_INT, peer, 9, WORLD, &r[1]);
  MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
  for (int way = 0; way < 6; ++way) {
    for (int i = 0; i < 2; ++i) {
      MPI_Irecv(b + 4 * i, 1, MPI_INT, peer, 20 + i, WORLD, &r[i]);
      MPI_Isend(a, 1, MPI_INT, peer, 20 + i, WORLD, &r[2 + i]);
    }
    if (way == 0) {
      for (int i = 0; i < 4; ++i) MPI_Waitany(4, r, &index, MPI_STATUS_IGNORE);
    } else if (way == 1) {
      for (int all = 0; all < 4; all += done) MPI_Waitsome(4, r, &done, indices, MPI_STATUSES_IGNORE);
    } else if (way == 2) {
      for (int i = 0; i < 4; ++i) {
        do MPI_Test(&r[i], &flag, MPI_STATUS_IGNORE);
        while (!flag);
      }
    } else if (way == 3) {
      do MPI_Testall(4, r, &flag, MPI_STATUSES_IGNORE);
      while (!flag);
    } else if (way == 4) {
      for (int i = 0; i < 4; i += flag) MPI_Testany(4, r, &index, &flag, MPI_STATUS_IGNORE);
    } else {
      for (int all = 0; all < 4; all += done) MPI_Testsome(4, r, &done, indices, MPI_STATUSES_IGNORE);
    }
  }
  // Twice a persistent message in each direction.
  MPI_Send_init(a, 6, MPI_INT, peer, 31, WORLD, &r[0]);
  MPI_Recv_init(b, 6, MPI_INT, peer, 31, WORLD, &r[1]);
  MPI_Startall(2, r);
  MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
  MPI_Start(&r[1]);
  MPI_Start(&r[0]);
  MPI_Wait(&r[0], MPI_STATUS_IGNORE);
  MPI_Wait(&r[1], MPI_STATUS_IGNORE);
  MPI_Request_free(&r[0]);
  MPI_Request_free(&r[1]);
  MPI_Message message;
  if (rank == 0) MPI_Send(a, 2, MPI_INT, 1, 33, WORLD);
  if (rank == 1) {
    MPI_Mprobe(0, 33, WORLD, &message, MPI_STATUS_IGNORE);
    MPI_Mrecv(b, 2, MPI_INT, &message, MPI_STATUS_IGNORE);
  }
}

// MPI 4's, which Open MPI 4 has as an extension. Each is started twice alone, once with the other.
static void persistent_collectives(void) {
  MPI_Comm comm;
  MPI_Request r[2];
  MPI_Comm_dup(WORLD, &comm);
#if MPI_VERSION >= 4
  MPI_Allreduce_init(a, b, 7, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &r[0]);
  MPI_Bcast_init(a, 5, MPI_INT, 1, comm, MPI_INFO_NULL, &r[1]);
#else
  MPIX_Allreduce_init(a, b, 7, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &r[0]);
  MPIX_Bcast_init(a, 5, MPI_INT, 1, comm, MPI_INFO_NULL, &r[1]);
#endif
  for (int round = 0; round < 2; ++round) {
    MPI_Start(&r[0]);
    MPI_Wait(&r[0], MPI_STATUS_IGNORE);
    MPI_Start(&r[1]);
    MPI_Wait(&r[1], MPI_STATUS_IGNORE);
  }
  MPI_Startall(2, r);
  MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
  MPI_Request_free(&r[0]);
  MPI_Request_free(&r[1]);
  MPI_Comm_free(&comm);
}

static void communicators(void) {
  MPI_Comm made[12], local, inter, merged;
  MPI_Group world, first_two;
  MPI_Request r, r2;
  const int two[2] = {0, 1};
  int n = 0;
  MPI_Comm_split(WORLD, rank % 2, -rank, &made[n++]);
  MPI_Comm_split_type(WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &made[n++]);
  MPI_Comm_dup(WORLD, &made[n++]);
  MPI_Comm_dup(WORLD, &made[n++]);
  MPI_Comm_dup_with_info(WORLD, MPI_INFO_NULL, &made[n++]);
  // Two at once; those of odd ranks are used in the other order.
  MPI_Comm_idup(WORLD, &made[n++], &r);
  MPI_Comm_idup(WORLD, &made[n++], &r2);
  if (rank % 2)
    finish(r2), finish(r);
  else
    finish(r), finish(r2);
  MPI_Comm_group(WORLD, &world);
  MPI_Group_incl(world, 2, two, &first_two);
  MPI_Comm_create(WORLD, first_two, &made[n++]);
  made[n] = MPI_COMM_NULL;
  if (rank < 2) MPI_Comm_create_group(WORLD, first_two, 5, &made[n]);
  ++n;
  MPI_Group_free(&world);
  MPI_Group_free(&first_two);
  MPI_Comm_set_name(made[2], "twin");
  for (int i = 0; i < n; ++i) {
    if (made[i] == MPI_COMM_NULL) continue;
    MPI_Allreduce(a, b, 1 + i, MPI_INT, MPI_SUM, made[i]);
    MPI_Comm_free(&made[i]);
  }
  // Even ranks on one side, odd ones on the other.
  MPI_Comm_split(WORLD, rank % 2, rank, &local);
  MPI_Intercomm_create(local, 0, WORLD, 1 - rank % 2, 99, &inter);
  MPI_Allreduce(a, b, 9, MPI_INT, MPI_SUM, inter);
  // Rank 0 of the even side gives to, and takes from, the odd side. Its own type is invalid where MPI ignores it.
  const int root = rank % 2 ? 0 : rank == 0 ? MPI_ROOT : MPI_PROC_NULL;
  MPI_Bcast(a, 4, MPI_INT, root, inter);
  MPI_Gather(rank % 2 ? a : NULL, rank % 2 ? 2 : 0, rank % 2 ? MPI_INT : MPI_DATATYPE_NULL, b, 2, MPI_INT, root, inter);
  MPI_Intercomm_merge(inter, rank % 2, &merged);
  MPI_Allreduce(a, b, 10, MPI_INT, MPI_SUM, merged);
  MPI_Comm_free(&merged);
  MPI_Comm_disconnect(&inter);
  MPI_Comm_free(&local);
}

static void windows(void) {
  MPI_Win window;
  MPI_Request r;
  int* base;
  const int next = (rank + 1) % ranks;
  MPI_Win_allocate(256, (int)sizeof(int), MPI_INFO_NULL, WORLD, &base, &window);
  MPI_Win_fence(0, window);
  MPI_Put(a, 4, MPI_INT, next, 0, 4, MPI_INT, window);
  MPI_Win_fence(0, window);
  MPI_Get(b, 5, MPI_INT, next, 0, 5, MPI_INT, window);
  MPI_Accumulate(a, 6, MPI_INT, next, 8, 6, MPI_INT, MPI_SUM, window);
  MPI_Win_fence(0, window);
  MPI_Win_lock_all(0, window);
  MPI_Fetch_and_op(a, b, MPI_INT, next, 20, MPI_SUM, window);
  MPI_Win_flush(next, window);
  MPI_Rput(a, 2, MPI_INT, next, 30, 2, MPI_INT, window, &r), finish(r);
  MPI_Win_unlock_all(window);
  MPI_Win_lock(MPI_LOCK_SHARED, next, 0, window);
  MPI_Win_unlock(next, window);
  MPI_Win_free(&window);
}

static void files(const char* path) {
  MPI_File file;
  MPI_Request r;
  MPI_File_open(WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
  MPI_File_write_at_all(file, 64 * rank, a, 8, MPI_INT, MPI_STATUS_IGNORE);
  MPI_File_sync(file);
  MPI_File_read_at(file, 64 * rank, b, 4, MPI_INT, MPI_STATUS_IGNORE);
  MPI_File_iwrite_at(file, 64 * rank, a, 2, MPI_INT, &r), finish(r);
  MPI_File_seek(file, 64 * rank, MPI_SEEK_SET);
  MPI_File_read(file, b, 3, MPI_INT, MPI_STATUS_IGNORE);
  MPI_File_read_all_begin(file, b, 1, MPI_INT);
  MPI_File_read_all_end(file, b, MPI_STATUS_IGNORE);
  MPI_Offset position;
  MPI_Datatype etype, filetype;
  char representation[MPI_MAX_DATAREP_STRING] = "";
  MPI_File_get_position(file, &position);
  MPI_File_get_view(file, &position, &etype, &filetype, representation);
  if (strcmp(representation, "native") != 0) MPI_Abort(WORLD, 3);
  MPI_File_set_atomicity(file, 0);
  MPI_File_close(&file);
}

// MPI 4's functions with large counts, on a communicator without a parent.
#if MPI_VERSION >= 4
static void large_counts(void) {
  MPI_Comm comm;
  MPI_Count many[most] = {0};
  MPI_Aint at[most] = {0};
  MPI_Request request;
  MPI_Group world;
  MPI_Comm_group(WORLD, &world);
  MPI_Comm_create_from_group(world, "tag", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
  MPI_Group_free(&world);
  MPI_Comm_set_name(comm, "large");
  for (int i = 0; i < ranks; ++i) many[i] = 2;
  MPI_Allreduce_c(a, b, 13, MPI_INT, MPI_SUM, comm);
  MPI_Alltoallv_c(a, many, at, MPI_INT, b, many, at, MPI_INT, comm);
  MPI_Allgather_c(a, 3, MPI_INT, b, 3, MPI_INT, comm);
  MPI_Sendrecv_c(a, 9, MPI_INT, (rank + 1) % ranks, 44, b, 9, MPI_INT, (rank + ranks - 1) % ranks, 44, comm,
                 MPI_STATUS_IGNORE);
  MPI_Bcast_init_c(a, 17, MPI_INT, 0, comm, MPI_INFO_NULL, &request);
  MPI_Request_free(&request);
  MPI_Comm_free(&comm);
}
#else
static void large_counts(void) {}
#endif

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(WORLD, &rank);
  MPI_Comm_size(WORLD, &ranks);
  if (ranks > most / 4 || ranks < 2) MPI_Abort(WORLD, 2);
  peer = rank < 2 ? 1 - rank : MPI_PROC_NULL;
  for (int i = 0; i < most; ++i) {
    counts[i] = i + 1;
    displacements[i] = i < 8 ? i * (i + 1) / 2 : 0;
    ones[i] = 1;
    types[i] = MPI_INT;
  }
  collectives(WORLD);
  nonblocking_collectives(WORLD);
  neighbors();
  messages();
  persistent_collectives();
  communicators();
  windows();
  files(argc > 1 ? argv[1] : "every_call.bin");
  large_counts();
  MPI_Finalize();
  printf("rank %d of %d done\n", rank, ranks);
  return 0;
}
