// SPDX-License-Identifier: Apache-2.0
// MPI initialised with a session of MPI 4, without MPI_Init. It knows nothing of Paceline.
#include <mpi.h>
#include <stdio.h>

int main(void) {
#if MPI_VERSION >= 4
  MPI_Session session;
  MPI_Group group;
  MPI_Comm comm;
  int rank = 0, one = 1, sum = 0;
  if (MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session) != MPI_SUCCESS) return 2;
  MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
  MPI_Comm_create_from_group(group, "tag", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
  MPI_Comm_rank(comm, &rank);
  for (int i = 0; i < 5; ++i) MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
  MPI_Group_free(&group);
  MPI_Comm_free(&comm);
  MPI_Session_finalize(&session);
  printf("rank %d: %d\n", rank, sum);
#endif
  return 0;
}
