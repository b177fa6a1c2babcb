// SPDX-License-Identifier: Apache-2.0
#include "trainer/reporting/journal.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "trainer/core/error.h"

namespace paceline::train {
namespace {

// Whether standard error is a terminal, which a person reads. A launcher puts a pipe between its ranks and the
// terminal, so the launcher's own standard error counts. The launcher is this process's parent, unless the rank runs on
// another host.
bool read_on_a_terminal() {
  if (isatty(STDERR_FILENO) == 1) return true;
  if (std::getenv("OMPI_COMM_WORLD_RANK") == nullptr && std::getenv("PMI_RANK") == nullptr) return false;
  std::error_code none;
  const auto target = std::filesystem::read_symlink(fmt::format("/proc/{}/fd/2", getppid()), none).string();
  return target.starts_with("/dev/pts/") || target.starts_with("/dev/tty");
}

double unix_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// The most memory that this process has had so far, in bytes.
std::int64_t peak_memory() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return std::int64_t{usage.ru_maxrss} * 1024;
}

}  // namespace

Journal::Journal(int rank, const std::string& log, bool append, const std::string& tensorboard)
    : speaks_(rank == 0), progress_(speaks_ && read_on_a_terminal()), name_(log) {
  if (!speaks_) return;
  if (!tensorboard.empty()) events_.emplace(tensorboard);
  if (log.empty()) return;
  log_.open(log, append ? std::ios::app : std::ios::trunc);
  if (!log_) throw Error(log, "the log cannot be written", std::strerror(errno));
}

void Journal::write(nlohmann::json object) {
  if (!log_.is_open()) return;
  object["unix_s"] = unix_seconds();
  log_ << object.dump() << std::endl;  // flushed, so that readers see whole lines and a killed run leaves its log
  if (!log_) throw Error(name_, "the log cannot be written", "check whether the disk is full");
}

void Journal::line(const std::string& text) {
  if (!speaks_) return;
  progress_.clear();
  const std::string whole = text + '\n';
  if (std::fwrite(whole.data(), 1, whole.size(), stdout) != whole.size() || std::fflush(stdout) != 0) {
    throw Error("standard output", fmt::format("cannot be written: {}", std::strerror(errno)),
                "free space, or redirect it to another file");
  }
}

void Journal::start(const nlohmann::json& run) {
  nlohmann::json object = run;
  object["event"] = "start";
  write(object);
}

void Journal::iteration(const IterationReport& r) {
  nlohmann::json object = {{"event", "iteration"},
                           {"iteration", r.iteration},
                           {"loss", r.loss},
                           {"seconds", r.seconds},
                           {"learning_rate", r.learning_rate}};
  if (r.staleness) object["staleness"] = *r.staleness;
  if (r.gradient_norm) object["gradient_norm"] = *r.gradient_norm;
  write(object);
  iterations_ = static_cast<std::int64_t>(r.iteration) + 1;
  if (!events_) return;
  std::vector<std::pair<std::string_view, double>> scalars = {
      {"iteration/loss", r.loss}, {"iteration/seconds", r.seconds}, {"iteration/learning_rate", r.learning_rate}};
  if (r.gradient_norm) scalars.emplace_back("iteration/gradient_norm", *r.gradient_norm);
  events_->scalars(iterations_, scalars);
}

void Journal::staleness(std::uint64_t epoch, const StalenessReport& report) {
  auto ranks = nlohmann::json::array();
  std::uint64_t updates = 0, sum = 0, most = 0;
  for (const StalenessReport::OfRank& rank : report.ranks) {
    ranks.push_back({{"updates", rank.updates},
                     {"sum", rank.sum},
                     {"max", rank.most},
                     {"first_version", rank.first_version},
                     {"last_version", rank.last_version}});
    updates += rank.updates;
    sum += rank.sum;
    most = std::max(most, rank.most);
  }
  const double mean = updates == 0 ? 0 : static_cast<double>(sum) / static_cast<double>(updates);
  write({{"event", "staleness"},
         {"epoch", epoch},
         {"updates", updates},
         {"mean", mean},
         {"max", most},
         {"histogram", report.histogram},
         {"ranks", ranks}});
  line(fmt::format("staleness in epoch {}: {:.2f} of {} updates on average, {} at most", epoch, mean, updates, most));
}

void Journal::epoch(const EpochReport& r) {
  nlohmann::json object = {{"event", "epoch"},
                           {"epoch", r.epoch},
                           {"train_loss", r.train_loss},
                           {"train_accuracy", r.train_accuracy},
                           {"images_per_s", r.images_per_s},
                           {"gflops", r.gflops},
                           {"peak_memory_bytes", peak_memory()},
                           {"seconds", r.seconds},
                           {"seconds_left", r.seconds_left}};
  std::vector<std::pair<std::string_view, double>> scalars = {{"epoch/train_loss", r.train_loss},
                                                              {"epoch/train_accuracy", r.train_accuracy},
                                                              {"epoch/images_per_s", r.images_per_s}};
  if (r.test_accuracy) {
    object["test_loss"] = *r.test_loss;
    object["test_accuracy"] = *r.test_accuracy;
    object["test_images"] = r.test_images;
    scalars.emplace_back("epoch/test_loss", *r.test_loss);
    scalars.emplace_back("epoch/test_accuracy", *r.test_accuracy);
  }
  if (r.test_top_5) {
    object["test_top5_accuracy"] = *r.test_top_5;
    scalars.emplace_back("epoch/test_top5_accuracy", *r.test_top_5);
  }
  write(object);
  if (events_) events_->scalars(iterations_, scalars);
  const std::string test = r.test_accuracy ? fmt::format(", test accuracy {:.2f} %", 100 * *r.test_accuracy) : "";
  const std::string left = r.seconds_left > 0 ? fmt::format(", {} left", as_time(r.seconds_left)) : "";
  line(fmt::format("epoch {}/{}: loss {:.4f}, training accuracy {:.2f} %{}, {:.1f} images/s, {:.1f} GFLOP/s{}", r.epoch,
                   r.epochs, r.train_loss, 100 * r.train_accuracy, test, r.images_per_s, r.gflops, left));
}

void Journal::end(const EndReport& r) {
  nlohmann::json object = {{"event", "end"},
                           {"images", r.images},
                           {"seconds", r.seconds},
                           {"images_per_s", static_cast<double>(r.images) / r.seconds},
                           {"steady_images_per_s", r.steady_images_per_s},
                           {"target_accuracy", r.target_accuracy}};
  if (r.test_accuracy) object["test_accuracy"] = *r.test_accuracy;
  if (r.test_loss) object["test_loss"] = *r.test_loss;
  if (r.bad_images) object["bad_images"] = *r.bad_images;
  if (r.seconds_to_accuracy) object["seconds_to_accuracy"] = *r.seconds_to_accuracy;
  write(object);
  const std::string reached =
      r.seconds_to_accuracy ? fmt::format("reached after {:.1f} s", *r.seconds_to_accuracy) : "not reached";
  if (r.images == 0) return;  // a resumed complete run, whose accuracy was printed
  line(fmt::format("{} images in {:.1f} s with start-up and evaluation: {:.1f} images/s; {:g} % test accuracy {}",
                   r.images, r.seconds, static_cast<double>(r.images) / r.seconds, 100 * r.target_accuracy, reached));
}

double steady_rate(std::vector<double> seconds, double images_per_iteration) {
  if (seconds.empty()) return 0;
  const std::size_t warm_up = seconds.size() == 1 ? 0 : std::max<std::size_t>(1, seconds.size() / 10);
  seconds.erase(seconds.begin(), seconds.begin() + static_cast<std::ptrdiff_t>(warm_up));
  const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
  std::nth_element(seconds.begin(), middle, seconds.end());
  double median = *middle;
  if (seconds.size() % 2 == 0) median = (median + *std::max_element(seconds.begin(), middle)) / 2;
  return images_per_iteration / median;
}

}  // namespace paceline::train
