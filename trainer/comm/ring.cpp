// SPDX-License-Identifier: Apache-2.0
// `ring`: reduce-scatter and allgather around a ring of all ranks (Patarasuk & Yuan, Bandwidth optimal all-reduce
// algorithms for clusters of workstations, 2009). The chunks are sent in pieces: a piece is sent on as soon as its sums
// are computed, while it is still in the cache and the next piece is on its way; Gloo's ring_chunked does the same with
// two pieces. On one host the pieces go through shared memory, else in messages.
#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include "trainer/comm/algorithms.h"
#include "trainer/comm/pieces.h"
#include "trainer/comm/ring_schedule.h"
#include "trainer/comm/shared_links.h"
#include "trainer/comm/waiting.h"

namespace paceline::train {

std::vector<RingStep> ring_schedule(int rank, int size) {
  const auto chunk = [size](int number) { return (number % size + size) % size; };
  std::vector<RingStep> steps;
  for (int s = 0; s + 1 < size; ++s) steps.push_back({chunk(rank - s), chunk(rank - s - 1), true});
  for (int s = 0; s + 1 < size; ++s) steps.push_back({chunk(rank + 1 - s), chunk(rank - s), false});
  return steps;
}

namespace {

class Ring : public Allreduce {
 public:
  explicit Ring(const Ranks& ranks)
      : ranks_(ranks),
        schedule_(ring_schedule(ranks.rank, ranks.size)),
        next_((ranks.rank + 1) % ranks.size),
        previous_((ranks.rank + ranks.size - 1) % ranks.size) {
    if (ranks.hosts == 1 && ranks.size > 1) links_ = SharedLinks::make(ranks.world, {next_});
  }

  void reduce(const Values& values) override { run(values, schedule_); }

  // The first half of the schedule completes the sums of the chunk that this rank sends next, the second half passes
  // the complete chunks on.
  bool has_halves() const override { return true; }
  Slice own_slice(std::size_t count) const override {
    return slice_of(count, size(), (static_cast<std::size_t>(ranks_.rank) + 1) % size());
  }
  void reduce_scatter(const Values& values) override { run(values, std::span(schedule_).first(size() - 1)); }
  void all_gather(const Values& values) override {
    const Values undivided{values.element, values.data, values.count, 1};
    run(undivided, std::span(schedule_).last(size() - 1));
  }

 private:
  // Runs these steps of the schedule. Message m is piece m % pieces_ of step m / pieces_.
  void run(const Values& values, std::span<const RingStep> steps) {
    if (ranks_.size == 1) return values.divide(values.all());
    steps_ = steps;
    const std::size_t longest = (values.count / size() + 1) * values.element.bytes();
    const std::size_t most = links_ ? SharedLinks::piece_bytes : piece_bytes;
    pieces_ = (longest + most - 1) / most;
    if (links_) {
      reduce_in_memory(values);
    } else {
      reduce_by_messages(values, longest / values.element.bytes());
    }
  }

  // A step sends what the step before received: piece m may be sent when piece m − pieces_ has arrived.
  void reduce_in_memory(const Values& values) {
    const std::size_t messages = steps_.size() * pieces_;
    std::size_t come = 0;
    exchange_pieces(
        &links_->to(next_), messages, [&](std::size_t m) { return m < come + pieces_; },
        [&](std::size_t m, std::byte* to) {
          const Slice slice = piece(values, steps_[m / pieces_].send, m);
          std::memcpy(to, values.at(slice.first), slice.count * values.element.bytes());
        },
        &links_->from(previous_), messages,
        [&](std::size_t m, const std::byte* from) {
          const RingStep& step = steps_[m / pieces_];
          const Slice slice = piece(values, step.receive, m);
          if (step.add) {
            values.add(slice, from);
            if (m / pieces_ + 2 == size()) values.divide(slice);  // the sums are complete
          } else {
            std::memcpy(values.at(slice.first), from, slice.count * values.element.bytes());
          }
          come = m + 1;
        });
  }

  void reduce_by_messages(const Values& values, std::size_t longest) {
    piece_room_ = (longest / pieces_ + 1) * values.element.bytes();
    if (received_.size() < receives_ahead * piece_room_) received_.resize(receives_ahead * piece_room_);
    const std::size_t messages = steps_.size() * pieces_;
    sends_.assign(messages, MPI_REQUEST_NULL);
    receives_.assign(messages, MPI_REQUEST_NULL);

    for (std::size_t m = 0; m < pieces_; ++m) send(values, m);
    for (std::size_t m = 0; m < std::min(receives_ahead, messages); ++m) receive(values, m);
    for (std::size_t m = 0; m < messages; ++m) {
      wait_for(receives_[m]);
      const RingStep& step = steps_[m / pieces_];
      const Slice slice = piece(values, step.receive, m);
      if (step.add) values.add(slice, room(m));
      const bool complete = step.add && m / pieces_ + 2 == size();
      if (complete) values.divide(slice);
      if (m + pieces_ < messages) send(values, m + pieces_);
      if (m + receives_ahead < messages) receive(values, m + receives_ahead);
    }
    wait_for(sends_);
  }

  static constexpr int tag = 1;  // differs from halving_doubling's

  std::size_t size() const { return static_cast<std::size_t>(ranks_.size); }
  std::byte* room(std::size_t m) { return received_.data() + m % receives_ahead * piece_room_; }

  Slice piece(const Values& values, int chunk, std::size_t m) const {
    const Slice whole = slice_of(values.count, size(), static_cast<std::size_t>(chunk));
    const Slice part = slice_of(whole.count, pieces_, m % pieces_);
    return {whole.first + part.first, part.count};
  }

  void send(const Values& values, std::size_t m) {
    const Slice slice = piece(values, steps_[m / pieces_].send, m);
    MPI_Isend(values.at(slice.first), static_cast<int>(slice.count), values.element.type(), next_, tag, ranks_.world,
              &sends_[m]);
  }

  void receive(const Values& values, std::size_t m) {
    const RingStep& step = steps_[m / pieces_];
    const Slice slice = piece(values, step.receive, m);
    std::byte* to = room(m);
    if (!step.add) {
      to = values.at(slice.first);
      // Step s of the allgather overwrites what step s of the reduce-scatter sent.
      if (steps_.front().add) wait_for(sends_[m - messages_of_reduce_scatter()]);
    }
    MPI_Irecv(to, static_cast<int>(slice.count), values.element.type(), previous_, tag, ranks_.world, &receives_[m]);
  }

  std::size_t messages_of_reduce_scatter() const { return (size() - 1) * pieces_; }

  const Ranks& ranks_;
  const std::vector<RingStep> schedule_;
  std::span<const RingStep> steps_;  // of the present call
  const int next_, previous_;
  std::unique_ptr<SharedLinks> links_;
  std::size_t pieces_ = 1;      // pieces of a chunk
  std::size_t piece_room_ = 0;  // bytes, at least those of the longest piece
  std::vector<std::byte> received_;
  std::vector<MPI_Request> sends_, receives_;
};

}  // namespace

std::unique_ptr<Allreduce> make_ring(const Ranks& ranks) { return std::make_unique<Ring>(ranks); }

}  // namespace paceline::train
