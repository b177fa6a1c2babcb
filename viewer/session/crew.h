// SPDX-License-Identifier: Apache-2.0
// Threads that help the UI thread with work that cannot wait, such as a frame. Work that may take longer than a frame
// belongs in a Task (background.h).
#pragma once

#include <QThreadPool>
#include <cstddef>
#include <functional>

namespace paceline::viewer {

class Crew {
 public:
  Crew();

  // Calls work(i) for each i below count, in this thread and in others, and returns when all calls have returned. They
  // begin in the order of i. Must not be called by two threads at a time. `work` does not throw.
  void each(std::size_t count, const std::function<void(std::size_t i)>& work);

 private:
  QThreadPool helpers_;
};

}  // namespace paceline::viewer
