#include "trainer/data/loader.h"

#include <utility>

#include "trainer/data/augment.h"
#include "trainer/ranges.h"

namespace paceline::train {

Loader::Loader(const Dataset& data, const Normalization& normalization, const Options& options)
    : data_(data), normalization_(normalization), options_(options), free_(options.depth) {
  thread_ = std::thread([this] { run(); });
}

Loader::~Loader() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

const Batch& Loader::next() {
  std::unique_lock lock(mutex_);
  if (!current_.labels.empty()) free_.push_back(std::move(current_));
  changed_.notify_all();
  changed_.wait(lock, [this] { return !ready_.empty() || failure_; });
  if (ready_.empty()) std::rethrow_exception(failure_);
  current_ = std::move(ready_.front());
  ready_.pop_front();
  return current_;
}

void Loader::run() try {
  name_this_thread("loader");
  for (std::uint64_t iteration = options_.first; iteration < options_.last; ++iteration) {
    Batch batch;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return !free_.empty() || stop_; });
      if (stop_) return;
      batch = std::move(free_.front());
      free_.pop_front();
    }
    prepare(iteration, batch);
    {
      const std::lock_guard lock(mutex_);
      ready_.push_back(std::move(batch));
    }
    changed_.notify_all();
  }
} catch (...) {
  const std::lock_guard lock(mutex_);
  failure_ = std::current_exception();
  changed_.notify_all();
}

void Loader::prepare(std::uint64_t iteration, Batch& batch) {
  const auto [epoch, within, plan] = options_.plan.at(iteration);
  if (epoch != epoch_of_order_) {
    order_ = epoch_order(options_.seed, epoch, plan.samples);
    epoch_of_order_ = epoch;
  }
  const auto samples = plan.batch_of(order_, within);
  const Range range(Category::preprocess, samples.front());
  static const RangeName slow_loader("slow-loader");
  suffer(slow_loader, options_.delay);
  const std::size_t image = data_.image_bytes();
  batch.images.resize(samples.size() * image);
  batch.labels.resize(samples.size());
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const std::uint32_t sample = samples[i];
    prepare_image(data_, sample, normalization_, augmentation_of(options_.seed, epoch, sample, data_.image_size),
                  std::span(batch.images).subspan(i * image, image));
    batch.labels[i] = data_.labels[sample];
  }
}

}  // namespace paceline::train
