// SPDX-License-Identifier: Apache-2.0
#include "trainer/comm/host_collectives.h"

#include <algorithm>

#include "trainer/comm/waiting.h"

namespace paceline::train {
namespace host_collectives {
namespace {

constexpr std::size_t longest_call = std::size_t{1} << 30;  // values; MPI counts are of type int
constexpr int message_tag = 7;

template <typename T, typename Call>
void in_calls(std::span<T> values, Call call) {
  while (!values.empty()) {
    const std::size_t count = std::min(values.size(), longest_call);
    call(values.data(), static_cast<int>(count));
    values = values.subspan(count);
  }
}

}  // namespace
}  // namespace host_collectives

void HostCollectives::wait_for_all() {
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Ibarrier(ranks_->world, &request);
  sleep_until([&] {
    int done = 0;
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    return done != 0;
  });
}

void HostCollectives::broadcast(std::span<float> values, int root) {
  host_collectives::in_calls(values,
                             [&](float* data, int count) { MPI_Bcast(data, count, MPI_FLOAT, root, ranks_->world); });
}

void HostCollectives::broadcast(std::span<std::uint64_t> values, int root) {
  host_collectives::in_calls(
      values, [&](std::uint64_t* data, int count) { MPI_Bcast(data, count, MPI_UINT64_T, root, ranks_->world); });
}

void HostCollectives::broadcast(std::span<std::byte> values, int root) {
  host_collectives::in_calls(
      values, [&](std::byte* data, int count) { MPI_Bcast(data, count, MPI_BYTE, root, ranks_->world); });
}

void HostCollectives::allreduce_sum(std::span<double> values) {
  host_collectives::in_calls(values, [this](double* data, int count) {
    MPI_Allreduce(MPI_IN_PLACE, data, count, MPI_DOUBLE, MPI_SUM, ranks_->world);
  });
}

void HostCollectives::allgather(std::span<const std::byte> own, std::span<std::byte> all) {
  const auto count = static_cast<int>(own.size());
  MPI_Allgather(own.data(), count, MPI_BYTE, all.data(), count, MPI_BYTE, ranks_->world);
}

void HostCollectives::send(std::span<const std::byte> bytes, int to) {
  host_collectives::in_calls(bytes, [&](const std::byte* data, int count) {
    MPI_Send(data, count, MPI_BYTE, to, host_collectives::message_tag, ranks_->world);
  });
}

void HostCollectives::receive(std::span<std::byte> bytes, int from) {
  host_collectives::in_calls(bytes, [&](std::byte* data, int count) {
    sleep_until([&] {
      int arrived = 0;
      MPI_Iprobe(from, host_collectives::message_tag, ranks_->world, &arrived, MPI_STATUS_IGNORE);
      return arrived != 0;
    });
    MPI_Recv(data, count, MPI_BYTE, from, host_collectives::message_tag, ranks_->world, MPI_STATUS_IGNORE);
  });
}

std::optional<int> HostCollectives::sender() {
  int arrived = 0;
  MPI_Status status;
  MPI_Iprobe(MPI_ANY_SOURCE, host_collectives::message_tag, ranks_->world, &arrived, &status);
  return arrived != 0 ? std::optional(status.MPI_SOURCE) : std::nullopt;
}

}  // namespace paceline::train
