// SPDX-License-Identifier: Apache-2.0
// Work beside the UI thread, so that no panel ever blocks the window.
//
//   Task task_{document.background()};
//   task_.start([run](const Ticket& ticket) { return count_slices(*run, ticket); },   // in a worker thread
//               [this](std::size_t count) { label_->setText(text_of(count)); });      // in the UI thread
//
// A task has one question at a time. A new question cancels the one before, and a cancelled question delivers nothing.
// Work that takes long asks its ticket now and then whether it is cancelled, and then returns anything.
#pragma once

#include <QObject>
#include <QThreadPool>
#include <atomic>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

namespace paceline::viewer {

// One question: the UI thread cancels it, the worker reads it.
class Ticket {
 public:
  explicit Ticket(const std::atomic<bool>& closing) : closing_(&closing) {}
  void cancel() { cancelled_ = true; }
  // Only for the worker and for the owner of the Background, since it also reads whether that is closing.
  bool cancelled() const { return cancelled_ || *closing_; }

 private:
  std::atomic<bool> cancelled_ = false;
  const std::atomic<bool>* closing_;
};

// The worker threads of one document, one for each CPU. The latest question is answered first.
class Background : public QObject {
  Q_OBJECT

 public:
  ~Background() override;  // cancels everything and waits for the workers

  // Whether everything that was asked is delivered or cancelled.
  bool idle() const { return pending_ == 0; }
  // Handles events until everything is delivered: for pictures and tests.
  void finish();

 Q_SIGNALS:
  void failed(const QString& why);  // the work threw an exception

 private:
  friend class Task;
  using Deliver = std::function<void()>;
  std::shared_ptr<Ticket> start(std::function<Deliver(const Ticket&)> work);

  QThreadPool pool_;
  std::atomic<bool> closing_ = false;
  std::size_t pending_ = 0;  // of the UI thread
  int priority_ = 0;
};

// Member of whoever asks; to be used in the UI thread only. Its destructor cancels.
class Task {
 public:
  explicit Task(Background& background) : background_(&background) {}
  ~Task() { cancel(); }
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;

  // `work` gets a const Ticket& and shares nothing with the UI thread that changes; `deliver` gets its result.
  template <class Work, class Receive>
  void start(Work work, Receive receive) {
    cancel();
    ticket_ = background_->start(
        [this, work = std::move(work), receive = std::move(receive)](const Ticket& ticket) -> Background::Deliver {
          auto result = std::make_shared<std::invoke_result_t<Work, const Ticket&>>(work(ticket));
          return [this, result, receive] {
            ticket_.reset();
            receive(std::move(*result));
          };
        });
  }
  void cancel() {
    if (ticket_) ticket_->cancel();
    ticket_.reset();
  }
  bool busy() const { return ticket_ != nullptr; }

 private:
  Background* background_;
  std::shared_ptr<Ticket> ticket_;
};

}  // namespace paceline::viewer
