#include "trainer/comm/host_communicator.h"

#include <algorithm>

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

HostCommunicator::HostCommunicator(std::unique_ptr<Ranks> ranks, std::unique_ptr<Element> element,
                                   std::unique_ptr<Allreduce> allreduce)
    : ranks_(std::move(ranks)), element_(std::move(element)), allreduce_(std::move(allreduce)) {}

void HostCommunicator::allreduce_mean(std::span<float> values) {
  if (values.empty()) return;
  const auto size = static_cast<float>(ranks_->size);
  const bool cast = element_->bytes() != sizeof(float);
  std::byte* data = reinterpret_cast<std::byte*>(values.data());
  if (cast) {
    if (narrow_.size() < payload_bytes(values.size())) narrow_.resize(payload_bytes(values.size()));
    data = narrow_.data();
    element_->narrow(values, size, data);
  }
  const float divisor = cast ? 1.0f : size;
  if (allreduce_->by_segment() && !segments_.empty() && segments_.back() == values.size()) {
    for (std::size_t i = 0; i + 1 < segments_.size(); ++i) {
      reduce({segments_[i], segments_[i + 1] - segments_[i]}, data, divisor);
    }
  } else {
    reduce({0, values.size()}, data, divisor);
  }
  if (cast) element_->widen(data, values);
}

void HostCommunicator::reduce(Slice slice, std::byte* data, float divisor) {
  for (std::size_t done = 0; done < slice.count; done += longest_call) {
    std::byte* part = data + (slice.first + done) * element_->bytes();
    allreduce_->reduce({*element_, part, std::min(slice.count - done, longest_call), divisor});
  }
}

void HostCommunicator::allreduce_sum(std::span<double> values) {
  in_calls(values, [this](double* data, int count) {
    MPI_Allreduce(MPI_IN_PLACE, data, count, MPI_DOUBLE, MPI_SUM, ranks_->world);
  });
}

void HostCommunicator::broadcast(std::span<float> values, int root) {
  in_calls(values, [&](float* data, int count) { MPI_Bcast(data, count, MPI_FLOAT, root, ranks_->world); });
}

void HostCommunicator::broadcast(std::span<std::uint64_t> values, int root) {
  in_calls(values, [&](std::uint64_t* data, int count) { MPI_Bcast(data, count, MPI_UINT64_T, root, ranks_->world); });
}

}  // namespace paceline::train
