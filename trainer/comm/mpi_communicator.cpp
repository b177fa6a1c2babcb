#include "trainer/comm/mpi_communicator.h"

#include <mpi.h>

#include <algorithm>
#include <cstddef>

namespace paceline::train {
namespace {

// MPI counts are of type int: a longer span goes in several calls.
constexpr std::size_t longest_call = std::size_t{1} << 30;

template <typename T, typename Call>
void in_calls(std::span<T> values, Call call) {
  while (!values.empty()) {
    const std::size_t count = std::min(values.size(), longest_call);
    call(values.data(), static_cast<int>(count));
    values = values.subspan(count);
  }
}

}  // namespace

// Errors of MPI calls end the job: MPI's own default handler prints the reason and the rank.
MpiCommunicator::MpiCommunicator() {
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &size_);
  MPI_Comm host;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &host);
  MPI_Comm_rank(host, &local_rank_);
  MPI_Comm_size(host, &local_size_);
  MPI_Comm_free(&host);
}

void MpiCommunicator::allreduce_mean(std::span<float> values) {
  in_calls(values, [](float* data, int count) {
    MPI_Allreduce(MPI_IN_PLACE, data, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  });
  if (size_ == 1) return;
  const auto ranks = static_cast<float>(size_);
  for (float& value : values) value /= ranks;
}

void MpiCommunicator::allreduce_sum(std::span<double> values) {
  in_calls(values, [](double* data, int count) {
    MPI_Allreduce(MPI_IN_PLACE, data, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  });
}

void MpiCommunicator::broadcast(std::span<float> values, int root) {
  in_calls(values, [root](float* data, int count) { MPI_Bcast(data, count, MPI_FLOAT, root, MPI_COMM_WORLD); });
}

void MpiCommunicator::broadcast(std::span<std::uint64_t> values, int root) {
  in_calls(values,
           [root](std::uint64_t* data, int count) { MPI_Bcast(data, count, MPI_UINT64_T, root, MPI_COMM_WORLD); });
}

}  // namespace paceline::train
