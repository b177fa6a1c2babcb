// SPDX-License-Identifier: Apache-2.0
// One-way links between the ranks of one host through shared memory. The receiver adds the values to its own right from
// the link, while an MPI message would be copied once more. A link holds a few pieces. A rank that has neither room to
// write nor a piece to read waits without an MPI call.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace paceline::train {

class SharedLinks {
 public:
  // Makes links between the ranks of `comm`, which must be on one host; `comm` must outlive the links. receivers: the
  // ranks that this rank writes to. A collective call; null on all ranks if the host has no memory to share.
  static std::unique_ptr<SharedLinks> make(MPI_Comm comm, const std::vector<int>& receivers);
  ~SharedLinks();
  SharedLinks(const SharedLinks&) = delete;
  SharedLinks& operator=(const SharedLinks&) = delete;

  static constexpr std::size_t piece_bytes = std::size_t{128} << 10;  // a piece may have one element more

  // One end of a link.
  struct Link {
    struct Counters {
      alignas(64) std::atomic<std::uint64_t> written{0};
      alignas(64) std::atomic<std::uint64_t> read{0};
    };
    static constexpr std::uint64_t pieces = 4;

    Counters* counters = nullptr;
    std::byte* slots = nullptr;
    std::uint64_t count = 0;  // number of pieces written or read at this end

    bool room() const { return count - counters->read.load(std::memory_order_acquire) < pieces; }
    bool full() const { return counters->written.load(std::memory_order_acquire) != count; }
    std::byte* piece() const { return slots + count % pieces * slot_bytes; }
    void push() { counters->written.store(++count, std::memory_order_release); }
    void pop() { counters->read.store(++count, std::memory_order_release); }
  };
  Link& to(int rank) { return *find(out_, rank); }
  Link& from(int rank) { return *find(in_, rank); }

 private:
  static constexpr std::size_t slot_bytes = piece_bytes + 64;
  struct End {
    int rank;
    Link link;
  };

  SharedLinks() = default;
  static Link* find(std::vector<End>& ends, int rank);

  MPI_Win window_ = MPI_WIN_NULL;
  std::vector<End> out_, in_;
};

// Writes `out` pieces and reads `in` pieces, each in order and as soon as possible. write(i, to) fills outgoing piece i
// as soon as may_write(i) is true; read(i, from) takes incoming piece i. A link without pieces may be null.
void exchange_pieces(SharedLinks::Link* to, std::size_t out, const std::function<bool(std::size_t)>& may_write,
                     const std::function<void(std::size_t, std::byte*)>& write, SharedLinks::Link* from, std::size_t in,
                     const std::function<void(std::size_t, const std::byte*)>& read);

}  // namespace paceline::train
