// SPDX-License-Identifier: Apache-2.0
#include "viewer/session/crew.h"

#include <QThread>
#include <algorithm>
#include <atomic>
#include <memory>

namespace paceline::viewer {
namespace crew {

struct Job {
  Job(const std::function<void(std::size_t)>& what, std::size_t times) : work(what), count(times) {}

  const std::function<void(std::size_t)>& work;  // not called any more when all is done
  const std::size_t count;
  std::atomic<std::size_t> next = 0, done = 0;

  void help() {
    for (std::size_t i = next++; i < count; i = next++) {
      work(i);
      if (++done == count) done.notify_all();
    }
  }
};

}  // namespace crew

Crew::Crew() {
  constexpr int most = 7;  // more hardly shorten a frame
  helpers_.setMaxThreadCount(std::clamp(QThread::idealThreadCount() - 1, 0, most));
}

void Crew::each(std::size_t count, const std::function<void(std::size_t i)>& work) {
  // A helper that starts late finds nothing left to do: nobody waits for it.
  const auto job = std::make_shared<crew::Job>(work, count);
  for (std::size_t helper = 1; helper < count && int(helper) <= helpers_.maxThreadCount(); ++helper) {
    helpers_.start([job] { job->help(); });
  }
  job->help();
  for (std::size_t done = job->done; done < count; done = job->done) job->done.wait(done);
}

}  // namespace paceline::viewer
