// SPDX-License-Identifier: Apache-2.0
// A thread that runs submitted functions one after the other.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace paceline::train {

// MPI_THREAD_SERIALIZED is enough if the owner makes no MPI call between submit() and wait(): then only one of the two
// threads uses MPI at a time.
class Background {
 public:
  explicit Background(const char* name);  // name: of the thread, in profiles
  ~Background();                          // waits for the submitted work
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

  void submit(std::function<void()> work);

  // Waits until all work is done. Throws the first exception of the work; the work behind it was discarded.
  void wait();

  // Throws the exception of the work so far, if there is one, without waiting.
  void check();

 private:
  void run(const char* name);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> work_;  // guarded by mutex_; the first is running
  bool stop_ = false;
  std::exception_ptr failure_;
  std::thread thread_;  // last: starts when all other members exist
};

}  // namespace paceline::train
