// SPDX-License-Identifier: Apache-2.0
// Messages between the stages of one pipeline: activations to the next stage, their gradients to the previous one.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace paceline::train {

class StageLinks {
 public:
  // Called with the name of a wait when it begins, and with null when it has ended.
  using OnWait = std::function<void(const char* name)>;

  // chain: one rank for each stage, in order; the links use a copy. A collective call over the chain.
  explicit StageLinks(MPI_Comm chain, OnWait on_wait = {});
  ~StageLinks();
  StageLinks(const StageLinks&) = delete;
  StageLinks& operator=(const StageLinks&) = delete;

  std::size_t stage() const { return stage_; }
  std::size_t stages() const { return stages_; }
  bool first() const { return stage_ == 0; }
  bool last() const { return stage_ + 1 == stages_; }

  struct Outgoing {
    std::size_t to = 0;  // a neighbour
    std::span<const std::byte> bytes;
  };
  struct Incoming {
    std::size_t from = 0;
    std::span<std::byte> bytes;
  };

  // Sends one message and receives another, each if given, and returns when both have arrived. Both begin before either
  // is waited for, so two stages that exchange messages do not block each other. Profiles show a range `send` and a
  // range `receive`.
  void exchange(const std::optional<Outgoing>& outgoing, const std::optional<Incoming>& incoming);

 private:
  void wait(std::vector<MPI_Request>& requests, const char* name);

  MPI_Comm chain_ = MPI_COMM_NULL;
  std::size_t stage_ = 0, stages_ = 1;
  const OnWait on_wait_;
  std::vector<MPI_Request> sends_, receives_;
};

}  // namespace paceline::train
