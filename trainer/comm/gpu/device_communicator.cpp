// SPDX-License-Identifier: Apache-2.0
#include "trainer/comm/gpu/device_communicator.h"

#include <utility>

#include "trainer/comm/cuda_aware.h"
#include "trainer/comm/gpu/device_collectives.h"
#include "trainer/comm/gpu/device_of_rank.h"
#include "trainer/comm/gpu/device_reduction.h"
#include "trainer/comm/ring_order.h"

namespace paceline::train::nccl {
namespace {

std::unique_ptr<Allreduce> make_by_name(const std::string& name, const Ranks& ranks, const Options& options) {
#define PACELINE_ROW(row, summary) \
  if (name == #row) return make_##row(ranks, options);
  PACELINE_NCCL_ALGORITHMS(PACELINE_ROW)
#undef PACELINE_ROW
  const bool has_cuda_aware_form = name == "mpi" || name == "naive" || name == "flat";
  if (has_cuda_aware_form && options.dtype == "f32" && cuda_awareness().yes) return make_cuda_aware(name, ranks);
  return make_staged(name, ranks, options);
}

}  // namespace

Communicator make_device_communicator(const std::string& name, const Options& options, std::unique_ptr<Ranks> ranks) {
  const std::vector<int> order = parse_ring_order(options.ring_order, ranks->size);
  if (uses_nccl(name)) check_placement(name, placements(*ranks));
  std::unique_ptr<Ranks> ordered = order.empty() ? nullptr : in_ring_order(*ranks, order);
  std::unique_ptr<Allreduce> allreduce = make_by_name(name, ordered ? *ordered : *ranks, options);
  const int size = ranks->size;
  Communicator host = make_host_communicator("mpi", options.dtype, std::move(ranks));
  const auto memory = std::make_shared<ModelMemory>();
  return {std::make_unique<DeviceCollectives>(std::move(host.collectives), memory),
          make_device_reduction(size, std::move(host.reduction), std::move(ordered), std::move(allreduce), memory,
                                options)};
}

}  // namespace paceline::train::nccl
