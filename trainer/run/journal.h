// What a run says: lines on standard output, and the log of JSON objects that scripts read. Only rank 0 speaks.
#pragma once

#include <cstdint>
#include <fstream>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "trainer/run/progress.h"
#include "trainer/updaters/updater.h"

namespace paceline::train {

struct EpochReport {
  std::uint64_t epoch = 0;  // counted from 1
  std::uint64_t epochs = 0;
  double train_loss = 0, train_accuracy = 0;
  std::optional<double> test_loss, test_accuracy;  // where it was evaluated
  std::int64_t test_images = 0;                    // how many that were
  double images_per_s = 0;                         // of the whole job, over the epoch's iterations
  double gflops = 0;                               // likewise, 10⁹ operations a second
  double seconds = 0;                              // since the program's start
};

struct EndReport {
  std::uint64_t images = 0;  // trained on, by all ranks
  double seconds = 0;        // from the program's start to the last evaluation's end
  double steady_images_per_s = 0;
  std::optional<double> test_accuracy;
  double target_accuracy = 0;
  std::optional<double> seconds_to_accuracy;  // since the program's start
  std::optional<std::size_t> bad_images{};    // left out; nothing where that was not allowed
  std::optional<double> test_loss{};          // with test_accuracy
};

class Journal {
 public:
  // An empty log file name: no log. Throws Error when the file cannot be written. On other ranks than 0 all else is
  // silent.
  Journal(int rank, const std::string& log, bool append);

  void start(const nlohmann::json& run);
  void iteration(std::uint64_t iteration, double loss, double seconds,
                 std::optional<std::uint64_t> staleness = std::nullopt);
  Progress& progress() { return progress_; }                           // shown where a person reads standard error
  void staleness(std::uint64_t epoch, const StalenessReport& report);  // of an epoch, counted from 1
  void epoch(const EpochReport& report);
  void end(const EndReport& report);
  void line(const std::string& text);  // on standard output

 private:
  void write(const nlohmann::json& object);

  bool speaks_ = false;
  Progress progress_;  // on standard error: mpirun makes a terminal of any standard output
  std::string name_;
  std::ofstream log_;
};

// images ÷ seconds of the median iteration, the first ones left out: a tenth of them, at least 1 (caches, first use of
// the memory) unless there is no other. 0 without iterations.
double steady_rate(std::vector<double> seconds, double images_per_iteration);

}  // namespace paceline::train
