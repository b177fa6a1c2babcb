// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/loader.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "trainer/core/ranges.h"

namespace paceline::train {

Loader::Loader(const ImageSource& source, Plan plan, const Options& options)
    : source_(source),
      plan_(std::move(plan)),
      options_(options),
      open_(options.first),
      in_use_(options.first),
      running_(options.workers) {
  slots_.reserve(options.depth + 1);
  for (std::size_t i = 0; i <= options.depth; ++i) slots_.emplace_back(options.memory);
  for (std::size_t worker = 0; worker < options_.workers; ++worker) threads_.emplace_back([this] { run(); });
}

bool Loader::stop(std::chrono::milliseconds time) {
  std::unique_lock lock(mutex_);
  stop_ = true;
  changed_.notify_all();
  return changed_.wait_for(lock, time, [this] { return running_ == 0; });
}

Loader::~Loader() {
  stop(std::chrono::milliseconds(0));
  for (std::thread& thread : threads_) thread.join();
}

const Batch& Loader::next() {
  std::unique_lock lock(mutex_);
  if (given_) {
    slot_of(in_use_++).begun = false;
    changed_.notify_all();
  }
  given_ = true;
  Slot& slot = slot_of(in_use_);
  if (options_.progress != nullptr) options_.progress->waiting = true;
  changed_.wait(lock, [&] { return slot.ready() || failure_; });
  if (options_.progress != nullptr) options_.progress->waiting = false;
  if (!slot.ready()) std::rethrow_exception(failure_);
  if (slot.failure) std::rethrow_exception(slot.failure);
  leave_out(slot);
  return slot.batch;
}

const Batch* Loader::following() {
  const std::lock_guard lock(mutex_);
  const Slot& slot = slot_of(in_use_ + 1);
  const bool ready = given_ && in_use_ + 1 < options_.last && slot.ready() && !slot.failure;
  return ready ? &slot.batch : nullptr;
}

void Loader::run() {
  prepare_batches();
  const std::lock_guard lock(mutex_);
  --running_;
  changed_.notify_all();
}

void Loader::prepare_batches() try {
  name_this_thread("loader");
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stop_ || open_ == options_.last || open_ < in_use_ + slots_.size(); });
    if (stop_ || open_ == options_.last) return;
    work_on(open_, lock);
  }
} catch (...) {
  const std::lock_guard lock(mutex_);
  failure_ = std::current_exception();
  changed_.notify_all();
}

// Works until all samples of a batch are distributed. Holds the lock at the beginning and at the end.
void Loader::work_on(std::uint64_t iteration, std::unique_lock<std::mutex>& lock) {
  static const RangeName slow_loader("slow-loader");
  Slot& slot = slot_of(iteration);  // belongs to this batch until all of its samples are done
  if (!slot.begun) begin(slot, iteration);
  std::optional<Range> range;
  while (!stop_ && slot.taken < slot.work.samples.size()) {
    const std::size_t i = slot.taken++;
    if (slot.taken == slot.work.samples.size()) ++open_;
    lock.unlock();
    if (!range && slot.work.draw) range.emplace(Category::preprocess, slot.work.samples.front());
    if (!range) range.emplace(Category::preprocess);
    if (i == 0) inject_delay(slow_loader, options_.delay);
    const std::exception_ptr failure = prepare(slot, i);
    if (options_.progress != nullptr) ++options_.progress->prepared;
    lock.lock();
    if (failure && (!slot.failure || i < slot.failed)) {
      slot.failure = failure;
      slot.failed = i;
    }
    if (++slot.done == slot.work.samples.size()) changed_.notify_all();
  }
}

std::exception_ptr Loader::prepare(Slot& slot, std::size_t i) try {
  if (options_.bad != nullptr) {
    prepare_or_replace(slot, i);
    return nullptr;
  }
  try {
    write(slot, i, slot.work.samples[i]);
  } catch (const ImageError& error) {
    throw Error(error.what(), "not a picture that can be used", "replace it, remove it, or give ‹on-bad-image› skip");
  }
  return nullptr;
} catch (...) {
  return std::current_exception();
}

void Loader::prepare_or_replace(Slot& slot, std::size_t i) {
  constexpr std::size_t most_in_a_row = 100;  // a longer row of failures is not the damage of single pictures
  const std::size_t first = slot.work.samples[i];
  const std::size_t most = slot.work.draw ? std::min(most_in_a_row, source_.size()) : 1;
  std::string last;
  for (std::size_t further = 0; further < most; ++further) {
    const std::size_t sample = (first + further) % source_.size();
    if (options_.bad->has(sample)) continue;
    try {
      return write(slot, i, sample);
    } catch (const ImageError& error) {
      options_.bad->add(sample, error.what());
      last = error.what();
    }
  }
  slot.missing[i] = 1;
  if (!slot.work.draw) return;
  throw Error("the data set",
              fmt::format("{} pictures in a row cannot be read{}{}", most, last.empty() ? "" : "; the last: ", last),
              "check the file system and the data set");
}

void Loader::write(Slot& slot, std::size_t i, std::size_t sample) {
  if (options_.progress != nullptr) {
    options_.progress->sample = sample;
    options_.progress->source = &source_;
  }
  const std::size_t values = source_.values();
  slot.batch.labels[i] = source_.label(sample);
  if (slot.batch.normalization != nullptr) {
    slot.batch.cuts[i] =
        source_.prepare_stored(sample, slot.work.draw, std::span(slot.batch.planes).subspan(i * values, values));
  } else {
    source_.prepare(sample, slot.work.draw, std::span(slot.batch.images).subspan(i * values, values));
  }
}

void Loader::leave_out(Slot& slot) const {
  Batch& batch = slot.batch;
  const std::size_t values = source_.values();
  std::size_t kept = 0;
  for (std::size_t i = 0; i < slot.missing.size(); ++i) {
    if (slot.missing[i] != 0) continue;
    if (kept != i) {
      const auto move = [&](auto& all, std::size_t length) {
        const auto from = all.begin() + static_cast<std::ptrdiff_t>(i * length);
        std::copy_n(from, length, all.begin() + static_cast<std::ptrdiff_t>(kept * length));
      };
      move(batch.labels, 1);
      if (batch.normalization != nullptr) {
        move(batch.cuts, 1);
        move(batch.planes, values);
      } else {
        move(batch.images, values);
      }
    }
    ++kept;
  }
  if (kept == slot.missing.size()) return;
  batch.labels.resize(kept);
  if (batch.normalization != nullptr) {
    batch.cuts.resize(kept);
    batch.planes.resize(kept * values);
  } else {
    batch.images.resize(kept * values);
  }
}

void Loader::begin(Slot& slot, std::uint64_t iteration) {
  slot.work = plan_(iteration);
  const std::size_t samples = slot.work.samples.size();
  slot.batch.normalization = options_.stored ? source_.stored() : nullptr;
  if (slot.batch.normalization != nullptr) {
    slot.batch.planes.resize(samples * source_.values());
    slot.batch.cuts.resize(samples);
  } else {
    slot.batch.images.resize(samples * source_.values());
  }
  slot.batch.labels.resize(samples);
  slot.missing.assign(options_.bad != nullptr ? samples : 0, 0);
  slot.taken = slot.done = 0;
  slot.failure = nullptr;
  slot.begun = true;
}

Loader::Plan training_batches(const RunPlan& plan, const Draw& draw) {
  return [plan, draw, order = std::vector<std::uint32_t>(),
          of_epoch = ~std::uint64_t{0}](std::uint64_t iteration) mutable -> Loader::Work {
    const auto [epoch, within, epoch_plan] = plan.at(iteration);
    if (epoch != of_epoch) {
      order = epoch_plan.order(draw.seed, epoch);
      of_epoch = epoch;
    }
    const auto samples = epoch_plan.batch_of(order, within);
    return {{samples.begin(), samples.end()}, Draw{draw.seed, epoch, draw.crop, draw.mirror}};
  };
}

Loader::Plan evaluation_batches(Slice part, std::size_t batch) {
  return [part, batch](std::uint64_t iteration) -> Loader::Work {
    const std::size_t done = iteration * batch;
    std::vector<std::uint32_t> samples(std::min(batch, part.count - done));
    std::iota(samples.begin(), samples.end(), static_cast<std::uint32_t>(part.first + done));
    return {std::move(samples), std::nullopt};
  };
}

}  // namespace paceline::train
