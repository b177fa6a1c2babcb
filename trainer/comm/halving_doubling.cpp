// SPDX-License-Identifier: Apache-2.0
#include "trainer/comm/halving_doubling.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "trainer/comm/algorithms.h"
#include "trainer/comm/pieces.h"
#include "trainer/comm/shared_links.h"
#include "trainer/comm/waiting.h"

namespace paceline::train {
namespace {

using Step = HalvingDoublingStep;

// A block of 2^k consecutive ranks.
struct Block {
  int first, size;
};

std::vector<Block> binary_blocks(int size) {
  std::vector<Block> blocks;
  for (int first = 0; first < size;) {
    const int block = static_cast<int>(std::bit_floor(static_cast<unsigned>(size - first)));
    blocks.push_back({first, block});
    first += block;
  }
  return blocks;
}

// The remaining range of a rank of a block after `steps` halvings.
Step::Range kept(int rank_in_block, int steps, int units) {
  Step::Range range{0, units};
  for (int k = 0; k < steps; ++k) {
    const int middle = (range.first + range.last) / 2;
    (rank_in_block >> k & 1 ? range.first : range.last) = middle;
  }
  return range;
}

int log2_of(int power) { return std::countr_zero(static_cast<unsigned>(power)); }

}  // namespace

HalvingDoublingSchedule halving_doubling_schedule(int rank, int size) {
  const std::vector<Block> blocks = binary_blocks(size);
  HalvingDoublingSchedule schedule;
  schedule.units = blocks.front().size;
  const auto own = std::find_if(blocks.rbegin(), blocks.rend(), [rank](Block b) { return b.first <= rank; });
  const Block block = *own;
  const int place = rank - block.first, halvings = log2_of(block.size);

  std::vector<Step>& down = schedule.reduction;
  for (int k = 0; k < halvings; ++k) {
    const int other = place ^ 1 << k;
    down.push_back({block.first + other, kept(other, k + 1, schedule.units), kept(place, k + 1, schedule.units), true});
  }
  const Step::Range mine = kept(place, halvings, schedule.units);
  if (own != blocks.rbegin()) {  // from the next smaller block, whose ranks have longer ranges: only our part
    const Block smaller = *std::prev(own);
    down.push_back({smaller.first + place % smaller.size, {}, mine, true});
  }
  if (std::next(own) == blocks.rend()) {
    schedule.sums = mine;
  } else {  // to those of the next larger block that share our range
    const Block larger = *std::next(own);
    for (int to = place; to < larger.size; to += block.size) {
      down.push_back({larger.first + to, kept(to, log2_of(larger.size), schedule.units), {}, true});
    }
  }
  for (auto step = down.rbegin(); step != down.rend(); ++step) {
    schedule.distribution.push_back({step->partner, step->receive, step->send, false});
  }
  return schedule;
}

namespace {

class HalvingDoubling : public Allreduce {
 public:
  HalvingDoubling(MPI_Comm comm, bool one_host) : comm_(comm) {
    int rank = 0, size = 1;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    schedule_ = halving_doubling_schedule(rank, size);
    if (!one_host || size == 1) return;
    std::vector<int> receivers;
    for (const std::vector<Step>* steps : {&schedule_.reduction, &schedule_.distribution}) {
      for (const Step& step : *steps) {
        if (!step.send.empty()) receivers.push_back(step.partner);
      }
    }
    links_ = SharedLinks::make(comm, receivers);
  }

  void reduce(const Values& values) override {
    if (schedule_.reduction.empty()) values.divide(values.all());
    for (const Step& step : schedule_.reduction) {
      const bool completes = &step == &schedule_.reduction.back() && !schedule_.sums.empty();
      if (links_) {
        exchange_in_memory(values, step, completes);
      } else {
        exchange_and_add(values, step, completes);
      }
    }
    for (const Step& step : schedule_.distribution) {
      if (links_) {
        exchange_in_memory(values, step, false);
      } else {
        exchange(values, step);
      }
    }
  }

 private:
  static constexpr int tag = 2;  // differs from ring's

  Slice slice(const Values& values, Step::Range range) const {
    const auto units = static_cast<std::size_t>(schedule_.units);
    const auto position = [&](int unit) { return slice_of(values.count, units, static_cast<std::size_t>(unit)).first; };
    return {position(range.first), position(range.last) - position(range.first)};
  }

  static std::size_t pieces(const Values& values, Slice slice, std::size_t most = piece_bytes) {
    return (slice.count * values.element.bytes() + most - 1) / most;
  }

  void exchange_in_memory(const Values& values, const Step& step, bool completes) {
    const Slice out = slice(values, step.send), in = slice(values, step.receive);
    const std::size_t sends = pieces(values, out, SharedLinks::piece_bytes);
    const std::size_t receives = pieces(values, in, SharedLinks::piece_bytes), width = values.element.bytes();
    exchange_pieces(
        sends > 0 ? &links_->to(step.partner) : nullptr, sends, [](std::size_t) { return true; },
        [&](std::size_t i, std::byte* to) {
          const Slice piece = slice_of(out.count, sends, i);
          std::memcpy(to, values.at(out.first + piece.first), piece.count * width);
        },
        receives > 0 ? &links_->from(step.partner) : nullptr, receives,
        [&](std::size_t i, const std::byte* from) {
          const Slice part = slice_of(in.count, receives, i), piece{in.first + part.first, part.count};
          if (step.add) {
            values.add(piece, from);
            if (completes) values.divide(piece);
          } else {
            std::memcpy(values.at(piece.first), from, piece.count * width);
          }
        });
  }

  // Exchanges pieces, so that received values are still in the cache when they are added, and complete sums when they
  // are divided.
  void exchange_and_add(const Values& values, const Step& step, bool completes) {
    const Slice out = slice(values, step.send), in = slice(values, step.receive);
    const MPI_Datatype type = values.element.type();
    sends_.assign(pieces(values, out), MPI_REQUEST_NULL);
    receives_.assign(pieces(values, in), MPI_REQUEST_NULL);
    const std::size_t room = (in.count / std::max<std::size_t>(receives_.size(), 1) + 1) * values.element.bytes();
    if (received_.size() < receives_ahead * room) received_.resize(receives_ahead * room);

    const auto receive = [&](std::size_t i) {
      const Slice piece = slice_of(in.count, receives_.size(), i);
      MPI_Irecv(received_.data() + i % receives_ahead * room, static_cast<int>(piece.count), type, step.partner, tag,
                comm_, &receives_[i]);
    };
    for (std::size_t i = 0; i < std::min(receives_ahead, receives_.size()); ++i) receive(i);
    for (std::size_t i = 0; i < sends_.size(); ++i) {
      const Slice piece = slice_of(out.count, sends_.size(), i);
      MPI_Isend(values.at(out.first + piece.first), static_cast<int>(piece.count), type, step.partner, tag, comm_,
                &sends_[i]);
    }
    for (std::size_t i = 0; i < receives_.size(); ++i) {
      wait_for(receives_[i]);
      const Slice part = slice_of(in.count, receives_.size(), i), piece{in.first + part.first, part.count};
      values.add(piece, received_.data() + i % receives_ahead * room);
      if (completes) values.divide(piece);
      if (i + receives_ahead < receives_.size()) receive(i + receives_ahead);
    }
    wait_for(sends_);
  }

  void exchange(const Values& values, const Step& step) {
    const Slice out = slice(values, step.send), in = slice(values, step.receive);
    sends_.assign(1, MPI_REQUEST_NULL);
    receives_.assign(1, MPI_REQUEST_NULL);
    const MPI_Datatype type = values.element.type();
    if (in.count > 0) {
      MPI_Irecv(values.at(in.first), static_cast<int>(in.count), type, step.partner, tag, comm_, receives_.data());
    }
    if (out.count > 0) {
      MPI_Isend(values.at(out.first), static_cast<int>(out.count), type, step.partner, tag, comm_, sends_.data());
    }
    wait_for(receives_);
    wait_for(sends_);
  }

  MPI_Comm comm_;
  HalvingDoublingSchedule schedule_;
  std::unique_ptr<SharedLinks> links_;
  std::vector<std::byte> received_;
  std::vector<MPI_Request> sends_, receives_;
};

}  // namespace

std::unique_ptr<Allreduce> make_halving_doubling_over(MPI_Comm comm, bool one_host) {
  return std::make_unique<HalvingDoubling>(comm, one_host);
}

// `halving_doubling`: over all ranks.
std::unique_ptr<Allreduce> make_halving_doubling(const Ranks& ranks) {
  return make_halving_doubling_over(ranks.world, ranks.hosts == 1);
}

}  // namespace paceline::train
