// Prepares a rank's training batches ahead of time, in a thread of its own.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "trainer/data/dataset.h"
#include "trainer/data/run_plan.h"

namespace paceline::train {

struct Batch {
  std::vector<float> images;  // batch × channels × height × width
  std::vector<std::int32_t> labels;
};

// Batches of iterations first … last − 1, counted over the whole run, in order. The thread runs at most `depth` batches
// ahead, so memory is bounded, and is called `loader` in profiles, with a range around each batch's preparation, whose
// payload is the batch's first sample: equal on two ranks, they train on the same images.
class Loader {
 public:
  struct Options {
    RunPlan plan;
    std::uint64_t seed = 1;
    std::uint64_t first = 0, last = 0;
    std::size_t depth = 4;
    std::chrono::milliseconds delay{0};  // a fault: added to each batch's preparation
  };

  // The data set must outlive the loader.
  Loader(const Dataset& data, const Normalization& normalization, const Options& options);
  ~Loader();  // stops the thread, whatever it has left to do
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  // Waits for the next batch; it stays valid until the next call. Throws what the thread threw. At most last − first
  // calls.
  const Batch& next();

 private:
  void run();
  void prepare(std::uint64_t iteration, Batch& batch);

  const Dataset& data_;
  const Normalization normalization_;
  const Options options_;
  std::uint64_t epoch_of_order_ = ~std::uint64_t{0};
  std::vector<std::uint32_t> order_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Batch> ready_, free_;  // guarded by mutex_
  bool stop_ = false;
  std::exception_ptr failure_;
  Batch current_;
  std::thread thread_;  // last: starts when all else is there
};

}  // namespace paceline::train
