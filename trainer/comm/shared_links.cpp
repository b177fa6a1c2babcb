// SPDX-License-Identifier: Apache-2.0
#include "trainer/comm/shared_links.h"

#include <algorithm>
#include <new>
#include <span>

#include "trainer/comm/waiting.h"

namespace paceline::train {
namespace {

constexpr std::size_t line = 64;  // bytes of a cache line, at which every part of the window starts

std::size_t in_lines(std::size_t bytes) { return (bytes + line - 1) / line * line; }

// The layout of a rank's window: for each rank the index of the link that goes there (−1: none), then the links.
std::byte* start_of_window(MPI_Win window, int rank) {
  MPI_Aint bytes = 0;
  int unit = 0;
  void* base = nullptr;
  MPI_Win_shared_query(window, rank, &bytes, &unit, &base);
  // The same offset on every rank, because mappings differ by whole pages.
  return reinterpret_cast<std::byte*>(in_lines(reinterpret_cast<std::uintptr_t>(base)));
}

// Whether every rank has its window. MPI's default is to end the job if there is no memory.
bool allocate(MPI_Comm comm, std::size_t bytes, MPI_Win& window) {
  MPI_Errhandler before = MPI_ERRHANDLER_NULL;
  MPI_Comm_get_errhandler(comm, &before);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  void* base = nullptr;
  int good =
      MPI_Win_allocate_shared(static_cast<MPI_Aint>(bytes), 1, MPI_INFO_NULL, comm, &base, &window) == MPI_SUCCESS;
  MPI_Comm_set_errhandler(comm, before);
  MPI_Errhandler_free(&before);
  MPI_Allreduce(MPI_IN_PLACE, &good, 1, MPI_INT, MPI_MIN, comm);
  return good != 0;
}

}  // namespace

std::unique_ptr<SharedLinks> SharedLinks::make(MPI_Comm comm, const std::vector<int>& receivers) {
  int rank = 0, size = 1;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  const std::size_t table = in_lines(static_cast<std::size_t>(size) * sizeof(int));
  constexpr std::size_t link_bytes = sizeof(Link::Counters) + Link::pieces * slot_bytes;

  std::unique_ptr<SharedLinks> links(new SharedLinks);
  if (!allocate(comm, line + table + receivers.size() * link_bytes, links->window_)) return nullptr;
  MPI_Win_lock_all(MPI_MODE_NOCHECK, links->window_);
  const auto link_of = [&](std::byte* window, int index) {
    std::byte* first = window + table + static_cast<std::size_t>(index) * link_bytes;
    return Link{std::launder(reinterpret_cast<Link::Counters*>(first)), first + sizeof(Link::Counters), 0};
  };

  std::byte* own = start_of_window(links->window_, rank);
  const std::span<int> indices(reinterpret_cast<int*>(own), static_cast<std::size_t>(size));
  std::ranges::fill(indices, -1);
  for (const int receiver : receivers) {
    int& index = indices[static_cast<std::size_t>(receiver)];
    if (index >= 0) continue;
    index = static_cast<int>(links->out_.size());
    const Link link = link_of(own, index);
    new (link.counters) Link::Counters;
    links->out_.push_back({receiver, link});
  }
  MPI_Win_sync(links->window_);
  MPI_Barrier(comm);
  MPI_Win_sync(links->window_);
  for (int sender = 0; sender < size; ++sender) {
    std::byte* window = start_of_window(links->window_, sender);
    const int index = reinterpret_cast<const int*>(window)[rank];
    if (index >= 0) links->in_.push_back({sender, link_of(window, index)});
  }
  return links;
}

SharedLinks::~SharedLinks() {
  if (window_ == MPI_WIN_NULL) return;
  MPI_Win_unlock_all(window_);
  MPI_Win_free(&window_);
}

SharedLinks::Link* SharedLinks::find(std::vector<End>& ends, int rank) {
  return &std::ranges::find(ends, rank, &End::rank)->link;
}

void exchange_pieces(SharedLinks::Link* to, std::size_t out, const std::function<bool(std::size_t)>& may_write,
                     const std::function<void(std::size_t, std::byte*)>& write, SharedLinks::Link* from, std::size_t in,
                     const std::function<void(std::size_t, const std::byte*)>& read) {
  Pause pause;
  for (std::size_t written = 0, taken = 0; written < out || taken < in;) {
    bool moved = false;
    if (written < out && may_write(written) && to->room()) {
      write(written++, to->piece());
      to->push();
      moved = true;
    }
    if (taken < in && from->full()) {
      read(taken++, from->piece());
      from->pop();
      moved = true;
    }
    if (moved) {
      pause.reset();
    } else {
      pause.wait();
    }
  }
}

}  // namespace paceline::train
