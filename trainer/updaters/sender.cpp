// SPDX-License-Identifier: Apache-2.0
#include "trainer/updaters/sender.h"

#include <utility>

namespace paceline::train {

void Sender::send(std::span<float> gradient, std::vector<Slice> parts, const RangeName& name) {
  std::size_t values = 0;
  for (const Slice& part : parts) values += part.count;
  const std::size_t bytes = reduction_.payload_bytes(values);
  const std::shared_ptr<Transfer> transfer = device_ != nullptr ? device_->begin_mean(gradient, parts) : nullptr;
  if (transfer) {
    if (!arrivals_) arrivals_.emplace("gradients");
    arrivals_->submit([this, transfer, bytes] {
      transfer->wait_until_ready();
      mark(Category::allreduce, ready_, bytes);
    });
  } else {
    mark(Category::allreduce, ready_, bytes);
  }
  background_.submit([this, transfer, gradient, parts = std::move(parts), &name, bytes] {
    if (transfer) transfer->wait_until_ready();
    if (!queues_) {
      const Range range(Category::wait);
      collectives_.wait_for_all();
    }
    const Range range(Category::allreduce, name, bytes);
    if (transfer) return transfer->finish();
    for (const Slice& part : parts) reduction_.allreduce_gradient(gradient, part.first, part.count);
  });
}

void Sender::wait() {
  if (!queues_) return settle();
  background_.check();
  device_->join();
}

void Sender::settle() {
  if (arrivals_) arrivals_->wait();
  background_.wait();
}

}  // namespace paceline::train
