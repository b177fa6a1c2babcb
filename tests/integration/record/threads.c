// SPDX-License-Identifier: Apache-2.0
// Threads that call MPI at once (MPI_THREAD_MULTIPLE), each on a communicator of its own. It knows nothing of Paceline.
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>

enum { threads = 4, rounds = 200 };

static MPI_Comm comms[threads];
static int rank, ranks;

static void* run(void* argument) {
  const int thread = (int)(long)argument;
  int value = thread, sum = 0, got = 0;
  for (int round = 0; round < rounds; ++round) {
    MPI_Request requests[2];
    MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, comms[thread]);
    MPI_Irecv(&got, 1, MPI_INT, (rank + 1) % ranks, round, comms[thread], &requests[0]);
    MPI_Isend(&value, 1, MPI_INT, (rank + ranks - 1) % ranks, round, comms[thread], &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    if (got != thread || sum != thread * ranks) MPI_Abort(MPI_COMM_WORLD, 3);
  }
  return NULL;
}

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  if (provided < MPI_THREAD_MULTIPLE) {
    puts("no threads");
    MPI_Finalize();
    return 0;
  }
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  pthread_t running[threads];
  for (int thread = 0; thread < threads; ++thread) MPI_Comm_dup(MPI_COMM_WORLD, &comms[thread]);
  for (long thread = 0; thread < threads; ++thread) pthread_create(&running[thread], NULL, run, (void*)thread);
  for (int thread = 0; thread < threads; ++thread) pthread_join(running[thread], NULL);
  MPI_Finalize();
  puts("done");
  return 0;
}
