#include "trainer/run/device.h"

#include <mpi.h>

#include "trainer/core/error.h"

namespace paceline::train {

const GpuPart* open_gpu(const std::string& wish, bool share) {
  if (wish == "cpu") return nullptr;
  std::string reason;
  const GpuPart* part = nullptr;
  try {
    part = &gpu_part();
  } catch (const Error& error) {
    reason = error.what();
  }
  int everywhere = part != nullptr ? 1 : 0;  // one host may lack a library that the others have
  MPI_Allreduce(MPI_IN_PLACE, &everywhere, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (everywhere == 0) {
    if (wish == "auto") return nullptr;
    if (reason.empty()) reason = "‹device› cuda: another host cannot load the libraries for GPUs: install them there";
    throw Error(reason, Status::usage);
  }
  try {
    part->use_device(Ranks(MPI_COMM_WORLD), share);
  } catch (const Error&) {  // thrown on all ranks
    if (wish == "auto") return nullptr;
    throw;
  }
  return part;
}

}  // namespace paceline::train
