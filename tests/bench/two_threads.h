// SPDX-License-Identifier: Apache-2.0
// What the benchmarks of recorded switches share: a thread that gives back each byte that it is handed, which is four
// switches, and the interval of a median.
#pragma once

#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <random>
#include <vector>

namespace paceline::bench {

inline double seconds(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

inline double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

struct MedianInterval {
  double low, high;
};
// The 95 % interval of the median, by 2,000 bootstrap samples.
inline MedianInterval median_interval(const std::vector<double>& values) {
  std::mt19937 random(1);
  std::vector<double> medians;
  for (int i = 0; i < 2000; ++i) {
    std::vector<double> drawn(values.size());
    for (double& one : drawn) one = values[random() % values.size()];
    medians.push_back(median(std::move(drawn)));
  }
  std::ranges::sort(medians);
  return {medians[50], medians[1949]};
}

// The thread ends with this object. The program ends with status 1 if it cannot have it.
class Partner {
 public:
  Partner() {
    if (pipe(there_) != 0 || pipe(back_) != 0 || pthread_create(&thread_, nullptr, answer, this) != 0) std::exit(1);
    while (id_ == 0) sched_yield();
  }
  Partner(const Partner&) = delete;
  Partner& operator=(const Partner&) = delete;
  ~Partner() {
    close(there_[1]);
    pthread_join(thread_, nullptr);
  }

  pid_t id() const { return id_; }
  void hand_a_byte() const {
    char byte = 0;
    if (write(there_[1], &byte, 1) != 1 || read(back_[0], &byte, 1) != 1) std::exit(1);
  }

 private:
  static void* answer(void* self) {
    auto& partner = *static_cast<Partner*>(self);
    partner.id_ = static_cast<pid_t>(syscall(SYS_gettid));
    char byte;
    while (read(partner.there_[0], &byte, 1) == 1 && write(partner.back_[1], &byte, 1) == 1) {
    }
    return nullptr;
  }

  int there_[2], back_[2];
  std::atomic<pid_t> id_{0};
  pthread_t thread_;
};

}  // namespace paceline::bench
