// Prepares batches ahead of time, in threads of its own.
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

  // Instead of `images`, where the model prepares them.
  std::pmr::vector<std::uint8_t> planes;
  std::vector<ImageCut> cuts;
  const Normalization* normalization = nullptr;
};

// How images come along, for whoever watches a run.
struct ImageProgress {
  std::atomic<bool> waiting{false};                 // whether next() waits for its batch
  std::atomic<std::uint64_t> prepared{0};           // images
  std::atomic<const ImageSource*> source{nullptr};  // of the image that was begun last, null before the first
  std::atomic<std::size_t> sample{0};
};

// Batches of iterations first … last − 1 in order. Workers share the samples of a batch among them; what a batch holds
// does not depend on how many there are. They run at most `depth` batches ahead of the one in use, so memory is
// bounded. In profiles they are called `loader`; each has a range around its work on a batch, whose payload, of batches
// with a draw, is the batch's first sample: equal on two ranks, they train on the same images.
class Loader {
 public:
  struct Work {
    std::vector<std::uint32_t> samples;
    std::optional<Draw> draw;
  };
  // What an iteration's batch is. Called once for each, in order, by one thread at a time.
  using Plan = std::function<Work(std::uint64_t iteration)>;

  struct Options {
    std::uint64_t first = 0, last = 0;
    std::size_t workers = 1, depth = 4;
    std::chrono::milliseconds delay{0};                                    // a fault: added to each batch's preparation
    std::pmr::memory_resource* memory = std::pmr::get_default_resource();  // of images
    bool stored = false;  // images as they are stored, where the source can give them so

    // Where images that cannot be read or decoded are noted, to go on without them: in training the next good image of
    // the source takes its place, so that batches keep their length; in evaluation it is left out. Both follow from the
    // source alone, so the batches are the same however many ranks and workers there are. Null: such an image is an
    // error.
    BadImages* bad = nullptr;
    ImageProgress* progress = nullptr;
  };

  // The source must outlive the loader.
  Loader(const ImageSource& source, Plan plan, const Options& options);
  ~Loader();  // stops the threads, whatever they have left to do, and waits for them

  // Stops the threads; whether they have all ended within this time. One that is stuck in a read has not.
  bool stop(std::chrono::milliseconds time);

  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  // Waits for the next batch; it stays valid until the next call. Throws what preparing it threw, that of its first
  // sample that failed: not before the batches ahead of it are used up. At most last − first calls.
  const Batch& next();

  // The batch after the one in use if it is ready, else null; it stays where it is until the call of next() after the
  // one that gives it.
  const Batch* following();

 private:
  struct Slot {
    explicit Slot(std::pmr::memory_resource* memory) : batch(memory) {}
    Work work;
    Batch batch;
    bool begun = false;
    std::vector<char> missing;        // by sample: whether it is left out
    std::size_t taken = 0, done = 0;  // samples
    std::size_t failed = 0;           // where `failure` is set: which sample
    std::exception_ptr failure;
    bool ready() const { return begun && done == work.samples.size(); }
  };

  void run();
  void prepare_batches();
  void work_on(std::uint64_t iteration, std::unique_lock<std::mutex>& lock);
  void begin(Slot& slot, std::uint64_t iteration);
  std::exception_ptr prepare(Slot& slot, std::size_t i);  // what it threw, if anything
  void prepare_or_replace(Slot& slot, std::size_t i);
  void write(Slot& slot, std::size_t i, std::size_t sample);
  void leave_out(Slot& slot) const;  // samples that are missing
  Slot& slot_of(std::uint64_t iteration) { return slots_[iteration % slots_.size()]; }

  const ImageSource& source_;
  const Plan plan_;
  const Options options_;

  std::mutex mutex_;  // guards all that follows; a worker's sample in its slot's batch is its own
  std::condition_variable changed_;
  std::vector<Slot> slots_;
  std::uint64_t open_;    // the iteration whose samples are being given out
  std::uint64_t in_use_;  // the one that next() has given, or will give first
  bool given_ = false;
  bool stop_ = false;
  std::size_t running_;         // threads
  std::exception_ptr failure_;  // of no single sample
  std::vector<std::thread> threads_;
};

// A run's training batches. draw: of the whole run; each batch has its own epoch.
Loader::Plan training_batches(const RunPlan& plan, const Draw& draw);

// Consecutive samples as evaluation sees them, `batch` at a time; the last batch may be smaller.
Loader::Plan evaluation_batches(Slice part, std::size_t batch);

}  // namespace paceline::train
