#include "trainer/comm/host_communicator.h"

#include <algorithm>

#include "trainer/comm/waiting.h"

namespace paceline::train {
namespace {

// MPI counts are of type int: a longer span goes in several calls.
constexpr std::size_t longest_call = std::size_t{1} << 30;

constexpr int letter = 7;  // tag of send()'s messages

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
                                   std::unique_ptr<Allreduce> allreduce, std::unique_ptr<Ranks> ordered)
    : ranks_(std::move(ranks)),
      ordered_(std::move(ordered)),
      element_(std::move(element)),
      allreduce_(std::move(allreduce)) {}

std::byte* HostCommunicator::narrowed(std::span<const float> values) {
  if (narrow_.size() < payload_bytes(values.size())) narrow_.resize(payload_bytes(values.size()));
  element_->narrow(values, static_cast<float>(ranks_->size), narrow_.data());
  return narrow_.data();
}

void HostCommunicator::mean(std::span<float> values, const std::vector<std::size_t>& parts) {
  if (values.empty()) return;
  std::byte* data = casts() ? narrowed(values) : reinterpret_cast<std::byte*>(values.data());
  const float divisor = casts() ? 1.0f : static_cast<float>(ranks_->size);
  std::size_t first = 0;
  for (const std::size_t count : parts) {
    reduce({first, count}, data, divisor);
    first += count;
  }
  if (casts()) element_->widen(data, values);
}

void HostCommunicator::allreduce_mean(std::span<float> values) {
  if (!segments_.empty() && segments_.back() == values.size()) return allreduce_gradient(values, 0, values.size());
  mean(values, {values.size()});
}

void HostCommunicator::allreduce_gradient(std::span<float> gradient, std::size_t first, std::size_t count) {
  std::vector<std::size_t> parts{count};
  const auto begin = std::lower_bound(segments_.begin(), segments_.end(), first);
  const auto end = std::lower_bound(segments_.begin(), segments_.end(), first + count);
  const bool filled = begin != segments_.end() && *begin == first && end != segments_.end() && *end == first + count;
  if (allreduce_->by_segment() && filled) {
    parts.clear();
    for (auto segment = begin; segment != end; ++segment) parts.push_back(segment[1] - segment[0]);
  }
  mean(gradient.subspan(first, count), parts);
}

void HostCommunicator::reduce_sum(std::span<float> values, int root) {
  const bool receives = ranks_->rank == root;
  std::byte* data = casts() ? narrowed(values) : reinterpret_cast<std::byte*>(values.data());
  for (std::size_t done = 0; done < values.size(); done += longest_call) {
    std::byte* part = data + done * element_->bytes();
    const auto count = static_cast<int>(std::min(values.size() - done, longest_call));
    MPI_Reduce(receives ? MPI_IN_PLACE : part, receives ? part : nullptr, count, element_->type(), element_->sum(),
               root, ranks_->world);
  }
  if (!casts() || !receives) return;
  element_->widen(data, values);
  for (float& value : values) value *= static_cast<float>(ranks_->size);
}

void HostCommunicator::wait_for_all() {
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Ibarrier(ranks_->world, &request);
  sleep_until([&] {
    int done = 0;
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    return done != 0;
  });
}

void HostCommunicator::send(std::span<const std::byte> bytes, int to) {
  in_calls(bytes,
           [&](const std::byte* data, int count) { MPI_Send(data, count, MPI_BYTE, to, letter, ranks_->world); });
}

void HostCommunicator::receive(std::span<std::byte> bytes, int from) {
  in_calls(bytes, [&](std::byte* data, int count) {
    sleep_until([&] {
      int come = 0;
      MPI_Iprobe(from, letter, ranks_->world, &come, MPI_STATUS_IGNORE);
      return come != 0;
    });
    MPI_Recv(data, count, MPI_BYTE, from, letter, ranks_->world, MPI_STATUS_IGNORE);
  });
}

std::optional<int> HostCommunicator::sender() {
  int come = 0;
  MPI_Status status;
  MPI_Iprobe(MPI_ANY_SOURCE, letter, ranks_->world, &come, &status);
  return come != 0 ? std::optional(status.MPI_SOURCE) : std::nullopt;
}

void HostCommunicator::allgather(std::span<const std::byte> own, std::span<std::byte> all) {
  const auto count = static_cast<int>(own.size());
  MPI_Allgather(own.data(), count, MPI_BYTE, all.data(), count, MPI_BYTE, ranks_->world);
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

void HostCommunicator::broadcast(std::span<std::byte> values, int root) {
  in_calls(values, [&](std::byte* data, int count) { MPI_Bcast(data, count, MPI_BYTE, root, ranks_->world); });
}

}  // namespace paceline::train
