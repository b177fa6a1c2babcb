// SPDX-License-Identifier: Apache-2.0
// The output of a run: lines on standard output, and the log of JSON objects that scripts read. Only rank 0 writes.
#pragma once

#include <cstdint>
#include <fstream>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "trainer/reporting/progress.h"
#include "trainer/updaters/updater.h"

namespace paceline::train {

struct IterationReport {
  std::uint64_t iteration = 0;
  double loss = 0, seconds = 0, learning_rate = 0;
  std::optional<std::uint64_t> staleness{};  // of an asynchronous updater
};

struct EpochReport {
  std::uint64_t epoch = 0;  // counted from 1
  std::uint64_t epochs = 0;
  double train_loss = 0, train_accuracy = 0;
  std::optional<double> test_loss, test_accuracy;  // if the epoch was evaluated
  std::int64_t test_images = 0;                    // number of images that were evaluated
  double images_per_s = 0;                         // over the epoch's iterations, summed over all ranks
  double gflops = 0;                               // likewise, in 10⁹ operations per second
  double seconds = 0;                              // since the program's start
};

struct EndReport {
  std::uint64_t images = 0;  // that all ranks trained on
  double seconds = 0;        // from the program's start to the end of the last evaluation
  double steady_images_per_s = 0;
  std::optional<double> test_accuracy;
  double target_accuracy = 0;
  std::optional<double> seconds_to_accuracy;  // since the program's start
  std::optional<std::size_t> bad_images{};    // number left out; empty if that was not allowed
  std::optional<double> test_loss{};          // with test_accuracy
};

class Journal {
 public:
  // An empty file name means no log. Throws Error if the file cannot be written. On ranks other than 0 all functions do
  // nothing.
  Journal(int rank, const std::string& log, bool append);

  void start(const nlohmann::json& run);
  void iteration(const IterationReport& report);
  Progress& progress() { return progress_; }                           // shown if a person reads standard error
  void staleness(std::uint64_t epoch, const StalenessReport& report);  // epoch: counted from 1
  void epoch(const EpochReport& report);
  void end(const EndReport& report);
  void line(const std::string& text);  // on standard output; throws Error if that is full or closed

 private:
  void write(nlohmann::json object);  // with the time of the call

  bool speaks_ = false;
  Progress progress_;  // on standard error, because under mpirun any standard output is a terminal
  std::string name_;
  std::ofstream log_;
};

// images ÷ seconds of the median iteration. The first tenth of the iterations, at least one unless it is the only one,
// is left out, because caches and memory are cold then. 0 without iterations.
double steady_rate(std::vector<double> seconds, double images_per_iteration);

}  // namespace paceline::train
