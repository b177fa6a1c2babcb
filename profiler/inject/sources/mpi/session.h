// The steps that happen once in an MPI program: the file is opened before MPI_Init, the rank is read, and clocks are
// compared with ranks on other machines after MPI_Init and before MPI_Finalize.
#pragma once

#include "profiler/inject/sources/mpi/library.h"

namespace paceline::inject {

// One of MPI_Init, PMPI_Init, MPI_Finalize and so on. Another tool's MPI_Init calls PMPI_Init, and Fortran's calls C's:
// the steps belong to the outermost one.
class SessionCall {
 public:
  SessionCall() : outermost_(depth_++ == 0) {}
  ~SessionCall() { --depth_; }
  SessionCall(const SessionCall&) = delete;
  SessionCall& operator=(const SessionCall&) = delete;

  bool is_outermost() const { return outermost_; }

 private:
  static thread_local constinit int depth_ __attribute__((tls_model("initial-exec")));
  const bool outermost_;
};

void before_init();
void after_init();
void before_finalize();
void after_finalize();

// Called when MPI_Comm_spawn has created this inter-communicator.
void note_spawned(Handle children);

// Called after MPI_Session_init of MPI 4. Sessions have no MPI_COMM_WORLD, which describes communicators. So only the
// times of calls are recorded unless MPI_Init is called too.
void after_session_init();

}  // namespace paceline::inject
