// SPDX-License-Identifier: Apache-2.0
// The output of a run: lines on standard output, and the log of JSON objects that scripts read. Only rank 0 writes.
#pragma once

#include <cstdint>
#include <fstream>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "trainer/reporting/event_file.h"
#include "trainer/reporting/progress.h"
#include "trainer/updaters/updater.h"

namespace paceline::train {

struct IterationReport {
  std::uint64_t iteration = 0;
  double loss = 0, seconds = 0, learning_rate = 0;
  std::optional<std::uint64_t> staleness{};  // of an asynchronous updater
  std::optional<double> gradient_norm{};     // before clipping
};

struct EpochReport {
  std::uint64_t epoch = 0;  // counted from 1
  std::uint64_t epochs = 0;
  double train_loss = 0, train_accuracy = 0;
  std::optional<double> test_loss, test_accuracy;  // if the epoch was evaluated
  std::optional<double> test_top_5{};              // likewise: the share of images whose class is among the best five
  std::int64_t test_images = 0;                    // number of images that were evaluated
  double images_per_s = 0;                         // over the epoch's iterations, summed over all ranks
  double gflops = 0;                               // likewise, in 10⁹ operations per second
  double seconds = 0;                              // since the program's start
  double seconds_left = 0;                         // estimated from the run so far
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
  // An empty name means no log, or no event file for TensorBoard, which is written into its directory. Throws Error if
  // a file cannot be written. On ranks other than 0 all functions do nothing.
  Journal(int rank, const std::string& log, bool append, const std::string& tensorboard = "");

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
  std::optional<EventFile> events_;
  std::int64_t iterations_ = 0;  // so far, for the event file
};

// images ÷ seconds of the median iteration. The first tenth of the iterations, at least one unless it is the only one,
// is left out, because caches and memory are cold then. 0 without iterations.
double steady_rate(std::vector<double> seconds, double images_per_iteration);

}  // namespace paceline::train
