// SPDX-License-Identifier: Apache-2.0
// `parameter_server`: rank 0 keeps the weights and the optimizer's state. Every rank, rank 0 included, sends each
// gradient as soon as it is computed and gets the newest weights back; no rank waits for another's gradient. A gradient
// covers an n-th of the images of an iteration of n ranks, so each update takes an n-th of the learning rate.
//
// A thread of rank 0 serves the other ranks; rank 0's own passes use the weights directly. While that thread serves, it
// alone calls MPI on rank 0. A round lasts from the first step() to settle(), which every rank calls when it is done.
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "trainer/core/error.h"
#include "trainer/core/ranges.h"
#include "trainer/updaters/background.h"
#include "trainer/updaters/threads.h"
#include "trainer/updaters/updater.h"

namespace paceline::train {
namespace {

constexpr UpdaterOption max_ahead{.key = "max-ahead",
                                  .help = "iterations that a rank may be ahead of the slowest; default: no limit",
                                  .whole = true,
                                  .most = 0x1p40};

// The header of a gradient's message and of the answer, which carries the weights.
struct Note {
  std::uint64_t version = 0;    // of the gradient's weights; in an answer, of the weights that follow
  std::uint64_t staleness = 0;  // in an answer
  double rate = 0;
  std::uint32_t done = 0;  // the round is over for this rank: no gradient follows, and no answer is expected
  std::uint32_t stop = 0;
};

std::span<std::byte> bytes_of(Note& note) { return std::as_writable_bytes(std::span(&note, 1)); }

// The server on rank 0.
class Server {
 public:
  Server(Collectives& collectives, Optimizer& optimizer, Model& model, std::optional<double> most_ahead)
      : collectives_(collectives),
        optimizer_(optimizer),
        memory_(model.memory()),
        most_ahead_(most_ahead ? std::optional(static_cast<std::uint64_t>(*most_ahead)) : std::nullopt),
        weights_(model.weights().size()),
        gradient_(collectives.size() > 1 ? weights_.size() : 0),
        clocks_(static_cast<std::size_t>(collectives.size())) {
    memory_.copy(model.weights(), weights_);
    report_.ranks.resize(clocks_.size());
  }

  void begin_round() {
    for (std::size_t rank = 0; rank < clocks_.size(); ++rank) {
      clocks_[rank] = {};
      // A report may cover several rounds.
      if (report_.ranks[rank].updates == 0) report_.ranks[rank].first_version = version_;
    }
    thread_.submit([this] { serve(); });
  }

  // Applies rank 0's own gradient and copies the newest weights. Both spans are of the model's memory.
  Note push(std::span<const float> gradient, Note note, std::span<float> weights) {
    const std::span<const float> own = memory_.readable(gradient, own_);
    std::unique_lock lock(mutex_);
    note.staleness = update(0, own, note);
    changed_.wait(lock, [this] { return may_go_on(0); });
    memory_.copy(weights_, weights);
    note.version = version_;
    note.stop = stop_ ? 1 : 0;
    return note;
  }

  // Called when rank 0 is done: waits for the other ranks. Returns whether any rank asked to stop.
  bool end_round(bool stop, std::span<float> weights) {
    {
      const std::lock_guard lock(mutex_);
      clocks_[0].done = true;
      stop_ = stop_ || stop;
    }
    thread_.wait();
    memory_.copy(weights_, weights);
    return stop_;
  }

  std::uint64_t version() const { return version_; }

  StalenessReport take_report() {
    StalenessReport report = std::exchange(report_, {});
    report_.ranks.resize(clocks_.size());
    return report;
  }

 private:
  struct Clock {
    std::uint64_t iterations = 0;  // of this round
    bool done = false;
    bool waits = false;  // for an answer
    std::uint64_t staleness = 0;
  };

  void serve() {
    set_threads(1, 1);  // for this thread's optimizer steps; the other cores compute
    while (true) {
      const std::optional<int> from = collectives_.sender();
      if (from) {
        take_from(*from);
      } else {
        std::this_thread::sleep_for(std::chrono::microseconds(50));
      }
      const std::lock_guard lock(mutex_);
      for (std::size_t rank = 1; rank < clocks_.size(); ++rank) {
        if (clocks_[rank].waits && may_go_on(rank)) answer(rank);
      }
      changed_.notify_all();
      if (std::ranges::all_of(clocks_, [](const Clock& clock) { return clock.done; })) return;
    }
  }

  void take_from(int from) {
    Note note;
    collectives_.receive(bytes_of(note), from);
    if (note.done == 0) collectives_.receive(std::as_writable_bytes(std::span(gradient_)), from);
    const std::lock_guard lock(mutex_);
    Clock& clock = clocks_[static_cast<std::size_t>(from)];
    if (note.done != 0) {
      clock.done = true;
      stop_ = stop_ || note.stop != 0;
      return;
    }
    clock.staleness = update(static_cast<std::size_t>(from), gradient_, note);
    clock.waits = true;
  }

  void answer(std::size_t rank) {
    Note note{version_, clocks_[rank].staleness, 0, 0, stop_ ? 1u : 0u};
    collectives_.send(bytes_of(note), static_cast<int>(rank));
    collectives_.send(std::as_bytes(std::span(weights_)), static_cast<int>(rank));
    clocks_[rank].waits = false;
  }

  // Stale synchronous parallel (Ho et al., NIPS 2013): no rank may be further ahead of the slowest than allowed.
  bool may_go_on(std::size_t rank) const {
    if (!most_ahead_) return true;
    return std::ranges::all_of(clocks_, [&](const Clock& other) {
      return other.done || clocks_[rank].iterations <= other.iterations + *most_ahead_;
    });
  }

  std::uint64_t update(std::size_t rank, std::span<const float> gradient, const Note& note) {
    const Range range(Category::optimizer);
    const std::uint64_t staleness = version_ - note.version;
    optimizer_.step(weights_, gradient, static_cast<float>(note.rate / static_cast<double>(clocks_.size())));
    ++version_;
    ++clocks_[rank].iterations;
    stop_ = stop_ || note.stop != 0;
    StalenessReport::OfRank& of_rank = report_.ranks[rank];
    ++of_rank.updates;
    of_rank.sum += staleness;
    of_rank.most = std::max(of_rank.most, staleness);
    of_rank.last_version = version_;
    if (report_.histogram.size() <= staleness) report_.histogram.resize(staleness + 1);
    ++report_.histogram[staleness];
    return staleness;
  }

  Collectives& collectives_;
  Optimizer& optimizer_;
  Memory& memory_;          // of the model
  std::vector<float> own_;  // rank 0's gradient, if the host cannot read it
  const std::optional<std::uint64_t> most_ahead_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<float> weights_,
      gradient_;  // guarded by mutex_ during a round, like all members below; only the thread uses gradient_
  std::uint64_t version_ = 0;  // updates so far
  std::vector<Clock> clocks_;
  bool stop_ = false;
  StalenessReport report_;
  Background thread_{"parameter server"};  // last: destroyed before the objects that it uses
};

class ParameterServerUpdater : public Updater {
 public:
  explicit ParameterServerUpdater(const UpdaterParts& parts) : Updater(parts) {
    if (collectives_.rank() != 0) return;
    server_ = std::make_unique<Server>(collectives_, optimizer_, model_, parts.value(max_ahead));
  }

  bool asynchronous() const override { return true; }

  StepResult step(const Batch& batch, std::uint64_t iteration, double rate, bool stop) override {
    if (!in_round_ && server_) server_->begin_round();
    in_round_ = true;
    StepResult result;
    result.score = pass_.run(batch, iteration);
    if (!std::isfinite(result.score.loss_sum)) throw Error(nonfinite_loss(iteration, rate, nonfinite_layer()));
    if (measures_norm()) gradient_norm_ = std::sqrt(squares_of(model_.gradients()));
    Note note{version_, 0, rate, 0, stop ? 1u : 0u};
    {
      const Range range(Category::allreduce, exchange_, 2 * model_.gradients().size_bytes());
      if (server_) {
        note = server_->push(model_.gradients(), note, model_.weights());
      } else {
        collectives_.send(bytes_of(note), 0);
        collectives_.send(std::as_bytes(model_.gradients()), 0);
        collectives_.receive(bytes_of(note), 0);
        collectives_.receive(std::as_writable_bytes(model_.weights()), 0);
      }
    }
    mark(Category::staleness, staleness_, note.staleness);
    version_ = note.version;
    result.staleness = note.staleness;
    result.stop = note.stop != 0;
    return result;
  }

  bool settle(bool stop) override {
    const Range range(Category::allreduce, settle_, model_.weights().size_bytes());
    if (in_round_ && server_) stop = server_->end_round(stop, model_.weights());
    if (in_round_ && !server_) {
      Note note{version_, 0, 0, 1, stop ? 1u : 0u};
      collectives_.send(bytes_of(note), 0);
    }
    in_round_ = false;
    collectives_.broadcast(model_.weights(), 0);
    std::array facts{server_ ? server_->version() : std::uint64_t{0}, std::uint64_t{stop ? 1u : 0u}};
    collectives_.broadcast(std::span<std::uint64_t>(facts), 0);
    version_ = facts[0];
    return facts[1] != 0;
  }

  std::optional<StalenessReport> take_staleness() override {
    if (!server_) return std::nullopt;
    return server_->take_report();
  }

 private:
  const RangeName exchange_{"push and pull"}, settle_{"settle"}, staleness_{"staleness"};
  std::uint64_t version_ = 0;  // of this rank's weights
  bool in_round_ = false;
  std::unique_ptr<Server> server_;
};

}  // namespace

const UpdaterKind parameter_server_updater{
    .name = "parameter_server",
    .summary = "asynchronous: each rank sends its gradient to rank 0 and gets the newest weights",
    .make = make_of<ParameterServerUpdater>,
    .options = {&max_ahead, 1},
    .threaded = true,
    .varies = "applies gradients in the order of their arrival, which differs each time",
    .only_f32 = "sends no gradients in {}",
    .steps_on_host = true,
    .clips = false,
    .copies_on_main_rank = 2};

}  // namespace paceline::train
