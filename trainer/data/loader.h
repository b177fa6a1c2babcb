// SPDX-License-Identifier: Apache-2.0
// Prepares batches ahead of time in its own threads.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory_resource>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "trainer/data/bad_images.h"
#include "trainer/data/image_source.h"
#include "trainer/data/run_plan.h"

namespace paceline::train {

struct Batch {
  explicit Batch(std::pmr::memory_resource* memory = std::pmr::get_default_resource())
      : images(memory), planes(memory) {}

  std::pmr::vector<float> images;  // batch × channels × height × width
  std::vector<std::int32_t> labels;

  // Instead of `images` if the model prepares them.
  std::pmr::vector<std::uint8_t> planes;
  std::vector<ImageCut> cuts;
  const Normalization* normalization = nullptr;
};

// The progress of the images, for the watchdog.
struct ImageProgress {
  std::atomic<bool> waiting{false};                 // whether next() waits for its batch
  std::atomic<std::uint64_t> prepared{0};           // images
  std::atomic<const ImageSource*> source{nullptr};  // of the last image that was begun; null before the first
  std::atomic<std::size_t> sample{0};
};

// Gives the batches of iterations first … last − 1 in order. Workers share the samples of a batch; the content of a
// batch does not depend on the number of workers. They run at most `depth` batches ahead of the one in use, so memory
// is bounded. Profiles show them as `loader` threads with a range around the work on each batch. The payload of a
// training batch's range is its first sample: two ranks with equal payloads train on the same images.
class Loader {
 public:
  struct Work {
    std::vector<std::uint32_t> samples;
    std::optional<Draw> draw;
  };
  // Returns an iteration's batch. Called once for each iteration, in order, by one thread at a time.
  using Plan = std::function<Work(std::uint64_t iteration)>;

  struct Options {
    std::uint64_t first = 0, last = 0;
    std::size_t workers = 1, depth = 4;
    std::chrono::milliseconds delay{0};  // an injected fault: added to each batch's preparation
    std::pmr::memory_resource* memory = std::pmr::get_default_resource();  // of images
    bool stored = false;  // images in their stored form, if the source has one

    // Records images that cannot be read or decoded, so that the run goes on without them. In training the next good
    // image of the source takes the place of a bad one, so that batches keep their length; evaluation leaves it out.
    // Both depend on the source alone, so the batches are the same for any number of ranks and workers. Null: such an
    // image is an error.
    BadImages* bad = nullptr;
    ImageProgress* progress = nullptr;
  };

  // The source must outlive the loader.
  Loader(const ImageSource& source, Plan plan, const Options& options);
  ~Loader();  // stops the threads, even with work left, and waits for them

  // Stops the threads. Returns whether all have ended within this time; a thread that is stuck in a read has not.
  bool stop(std::chrono::milliseconds time);

  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  // Waits for the next batch, which stays valid until the next call. Throws the exception of the batch's first sample
  // that failed; earlier batches are returned first. May be called last − first times.
  const Batch& next();

  // The batch after the one in use if it is ready, else null. It stays in place until the call of next() after the one
  // that returns it.
  const Batch* following();

 private:
  struct Slot {
    explicit Slot(std::pmr::memory_resource* memory) : batch(memory) {}
    Work work;
    Batch batch;
    bool begun = false;
    std::vector<char> missing;        // for each sample: whether it is left out
    std::size_t taken = 0, done = 0;  // samples
    std::size_t failed = 0;           // the sample of `failure`
    std::exception_ptr failure;
    bool ready() const { return begun && done == work.samples.size(); }
  };

  void run();
  void prepare_batches();
  void work_on(std::uint64_t iteration, std::unique_lock<std::mutex>& lock);
  void begin(Slot& slot, std::uint64_t iteration);
  std::exception_ptr prepare(Slot& slot, std::size_t i);  // returns its exception, if there is one
  void prepare_or_replace(Slot& slot, std::size_t i);
  void write(Slot& slot, std::size_t i, std::size_t sample);
  void leave_out(Slot& slot) const;  // removes the missing samples
  Slot& slot_of(std::uint64_t iteration) { return slots_[iteration % slots_.size()]; }

  const ImageSource& source_;
  const Plan plan_;
  const Options options_;

  std::mutex mutex_;  // guards all members below, but not the samples of a slot's batch, which belong to their workers
  std::condition_variable changed_;
  std::vector<Slot> slots_;
  std::uint64_t open_;    // the iteration whose samples are being distributed
  std::uint64_t in_use_;  // the iteration that next() has returned, or will return first
  bool given_ = false;
  bool stop_ = false;
  std::size_t running_;         // threads
  std::exception_ptr failure_;  // not of a single sample
  std::vector<std::thread> threads_;
};

// A run's training batches. draw: for the whole run; the epoch of each batch is set here.
Loader::Plan training_batches(const RunPlan& plan, const Draw& draw);

// Batches of consecutive samples for evaluation; the last batch may be smaller.
Loader::Plan evaluation_batches(Slice part, std::size_t batch);

}  // namespace paceline::train
