// SPDX-License-Identifier: Apache-2.0
// How far a long piece of work has come.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <type_traits>
#include <utility>

#include "profiler/format/error.h"

namespace paceline::analysis {

// Called now and then with the share that is done, 0 to 1; returning false stops the work (Error). Readers that load
// ranks one by one also report the share of each rank.
class Progress {
 public:
  using Whole = std::function<bool(double share)>;
  // The name is for people: "rank 3 on node01". Ranks are announced with 0, in their order, before the first one is
  // read. Any thread may call it, several at a time.
  using Part = std::function<void(const std::string& name, double share)>;

  Progress() = default;
  template <class Function>
  requires std::is_invocable_r_v<bool, Function&, double> Progress(Function whole, Part part = {})
      : whole_(std::move(whole)), part_(std::move(part)) {}

  explicit operator bool() const { return static_cast<bool>(whole_); }
  bool operator()(double share) const { return whole_(share); }
  void part(const std::string& name, double share) const {
    if (part_) part_(name, share);
  }
  // The share of one piece of the work becomes a share of the whole; parts are passed on.
  Progress from_to(double begin, double end) const {
    if (!whole_) return {};
    return {[whole = whole_, begin, end](double share) { return whole(begin + (end - begin) * share); }, part_};
  }

 private:
  Whole whole_;
  Part part_;
};

// Adds up what several threads have done, and calls a Progress after each percent. Any thread may call it, one at a
// time.
class ProgressCounter {
 public:
  ProgressCounter(Progress progress, std::uint64_t total) : progress_(std::move(progress)), total_(total) {}

  // Throws Error where the work is to stop.
  void add(std::uint64_t done) {
    if (!progress_ || total_ == 0) return;
    const std::scoped_lock lock(mutex_);
    done_ += done;
    const std::uint64_t percent = 100 * done_ / total_;
    if (percent == reported_ && !stopped_) return;
    reported_ = percent;
    stopped_ = stopped_ || !progress_(static_cast<double>(done_) / static_cast<double>(total_));
    if (stopped_) throw Error("loading was stopped");
  }

  // True after add() threw.
  bool stopped() {
    const std::scoped_lock lock(mutex_);
    return stopped_;
  }

 private:
  const Progress progress_;
  const std::uint64_t total_;
  std::mutex mutex_;
  std::uint64_t done_ = 0, reported_ = 0;
  bool stopped_ = false;
};

// What one thread has done of a part of that.
class PartCounter {
 public:
  // Announces the part. A part without a name is only counted in the whole.
  PartCounter(const Progress& progress, ProgressCounter& whole, std::string name, std::uint64_t total)
      : progress_(progress), whole_(whole), name_(std::move(name)), total_(total) {
    if (!name_.empty()) progress_.part(name_, 0);
  }

  void add(std::uint64_t done) {
    whole_.add(done);
    done_ += done;
    const std::uint64_t percent = done_ >= total_ ? 100 : 100 * done_ / total_;
    if (name_.empty() || percent == reported_) return;
    reported_ = percent;
    progress_.part(name_, static_cast<double>(percent) / 100);
  }

 private:
  const Progress& progress_;
  ProgressCounter& whole_;
  const std::string name_;
  const std::uint64_t total_;
  std::uint64_t done_ = 0, reported_ = 0;
};

}  // namespace paceline::analysis
