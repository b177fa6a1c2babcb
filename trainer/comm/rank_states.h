// SPDX-License-Identifier: Apache-2.0
// What the ranks of a job are doing. Ranks ask each other over UDP, because MPI cannot be used when a rank is missing
// in a collective call. No rank sends anything before it is asked.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "trainer/comm/collectives.h"

namespace paceline::train {

struct RankState {
  std::uint64_t iteration = 0;
  std::uint64_t collectives = 0;         // begun so far
  std::int32_t waits_ms = -1;            // time in a collective call; -1: in none
  std::int32_t since_collective_ms = 0;  // time since the last call, if it is in none
  std::int32_t images_ms = -1;  // time that it has waited for images without one becoming ready; -1: does not wait
  std::uint32_t saving = 0;     // whether it is writing a checkpoint
};

class RankStates {
 public:
  // A collective call. Without a socket no rank answers.
  explicit RankStates(Collectives& collectives);
  ~RankStates();
  RankStates(const RankStates&) = delete;
  RankStates& operator=(const RankStates&) = delete;

  using Own = std::function<RankState()>;

  // Answers the questions of other ranks for `time` or until wake() is called. Call it from one thread, as ask().
  void serve(const Own& own, std::chrono::milliseconds time);
  void wake();

  // Asks for the state of every rank; empty for ranks that do not answer within this time. Answers other ranks
  // meanwhile.
  std::vector<std::optional<RankState>> ask(const Own& own, std::chrono::milliseconds time);

  const std::string& host(int rank) const { return peers_[static_cast<std::size_t>(rank)].host; }

 private:
  struct Peer {
    std::string host;
    std::vector<std::uint32_t> addresses;  // IPv4, in network order
    std::uint16_t port = 0;                // likewise; 0: no socket
  };
  struct Message;

  void receive(const Own& own, std::vector<std::optional<RankState>>* answers);
  bool wait(std::chrono::milliseconds time);  // whether a message has arrived

  const int rank_;
  std::uint64_t token_ = 0;  // of this job: messages with another token are ignored
  int socket_ = -1, wake_ = -1;
  std::vector<Peer> peers_;
};

}  // namespace paceline::train
