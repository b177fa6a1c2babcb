// SPDX-License-Identifier: Apache-2.0
#include "viewer/session/background.h"

#include <sys/resource.h>

#include <QCoreApplication>
#include <exception>

namespace paceline::viewer {

namespace background {

// The UI thread goes first where a worker shares its CPU. Threads that the worker starts inherit this.
void step_back() {
  constexpr int nice = 10;
  thread_local bool done = false;
  if (!std::exchange(done, true)) setpriority(PRIO_PROCESS, 0, nice);  // on Linux: of this thread alone
}

}  // namespace background

Background::~Background() {
  closing_ = true;
  pool_.clear();
  pool_.waitForDone();
}

void Background::finish() {
  while (!idle()) QCoreApplication::processEvents(QEventLoop::WaitForMoreEvents);
}

std::shared_ptr<Ticket> Background::start(std::function<Deliver(const Ticket&)> work) {
  auto ticket = std::make_shared<Ticket>(closing_);
  ++pending_;
  const auto answer = [this, ticket, work = std::move(work)] {
    background::step_back();
    Deliver deliver;
    QString failure;
    try {
      if (!ticket->cancelled()) deliver = work(*ticket);
    } catch (const std::exception& error) {  // usually no memory
      failure = QString::fromUtf8(error.what());
    }
    const auto arrive = [this, ticket, deliver, failure] {
      --pending_;
      if (ticket->cancelled()) return;
      if (deliver) deliver();
      if (!failure.isEmpty()) Q_EMIT failed(failure);
    };
    QMetaObject::invokeMethod(this, arrive, Qt::QueuedConnection);
  };
  pool_.start(answer, ++priority_);
  return ticket;
}

}  // namespace paceline::viewer
