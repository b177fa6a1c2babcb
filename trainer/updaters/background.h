// One thread that does what it is given, one thing after the other.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace paceline::train {

// Two threads hand MPI to each other through it: MPI_THREAD_SERIALIZED is enough where the owner makes no MPI call
// between submit() and wait().
class Background {
 public:
  explicit Background(const char* name);  // of the thread, in profiles
  ~Background();                          // after the work that was submitted
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

  void submit(std::function<void()> work);

  // Until all work is done. Throws what work threw; the work after that was not done.
  void wait();

  // Throws what work threw so far, without waiting.
  void check();

 private:
  void run(const char* name);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> work_;  // guarded by mutex_; the first is being done
  bool stop_ = false;
  std::exception_ptr failure_;
  std::thread thread_;  // last: starts when all else is there
};

}  // namespace paceline::train
