// SPDX-License-Identifier: Apache-2.0
#include "trainer/comm/cuda_aware.h"

#include <mpi.h>
#if __has_include(<mpi-ext.h>)
#include <mpi-ext.h>
#endif

#include <array>

namespace paceline::train {

CudaAwareness cuda_awareness() {
#if defined(MPIX_CUDA_AWARE_SUPPORT)
  if (MPIX_Query_cuda_support() == 1) return {true, ""};
  const std::string answer = " reports that it was built without CUDA";
#else
  const std::string answer = " cannot report whether it supports CUDA (mpi-ext.h without MPIX_Query_cuda_support)";
#endif
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> version{};
  int length = 0;
  MPI_Get_library_version(version.data(), &length);
  const std::string whole(version.data(), static_cast<std::size_t>(length));
  return {false, whole.substr(0, whole.find(',')) + answer};
}

}  // namespace paceline::train
