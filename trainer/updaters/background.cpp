// SPDX-License-Identifier: Apache-2.0
#include "trainer/updaters/background.h"

#include <utility>

#include "trainer/comm/waiting.h"
#include "trainer/core/ranges.h"

namespace paceline::train {

Background::Background(const char* name) : thread_([this, name] { run(name); }) {}

Background::~Background() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Background::submit(std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    work_.push_back(std::move(work));
  }
  changed_.notify_all();
}

void Background::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return work_.empty(); });
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void Background::check() {
  const std::lock_guard lock(mutex_);
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void Background::run(const char* name) {
  name_this_thread(name);
  sleep_in_waits();
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return !work_.empty() || stop_; });
    if (work_.empty()) return;
    const std::function<void()>& work = work_.front();  // push_back() does not move a deque's elements
    lock.unlock();
    std::exception_ptr failure;
    try {
      work();
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    work_.pop_front();
    if (failure) {
      failure_ = failure;
      work_.clear();
    }
    changed_.notify_all();
  }
}

}  // namespace paceline::train
