// What the ranks of a job are doing, asked for beside MPI: where a rank does not come to a collective call, MPI cannot
// be used to find out why. Each rank has a UDP socket and answers questions there; nobody sends anything before one
// asks.
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
  std::int32_t waits_ms = -1;            // in a collective call for so long; -1: in none
  std::int32_t since_collective_ms = 0;  // where it is in none
  std::int32_t images_ms = -1;           // waits for images, none of which was ready for so long; -1: does not wait
  std::uint32_t saving = 0;              // whether it writes a checkpoint
};

class RankStates {
 public:
  // A collective call. Where there is no socket to be had nobody answers.
  explicit RankStates(Collectives& collectives);
  ~RankStates();
  RankStates(const RankStates&) = delete;
  RankStates& operator=(const RankStates&) = delete;

  using Own = std::function<RankState()>;

  // Answers what other ranks ask, for so long or until wake() is called. From one thread, like ask().
  void serve(const Own& own, std::chrono::milliseconds time);
  void wake();

  // The state of every rank, by rank; nothing of those that do not answer within this time. Answers meanwhile.
  std::vector<std::optional<RankState>> ask(const Own& own, std::chrono::milliseconds time);

  const std::string& host(int rank) const { return peers_[static_cast<std::size_t>(rank)].host; }

 private:
  struct Peer {
    std::string host;
    std::vector<std::uint32_t> addresses;  // IPv4, in network order
    std::uint16_t port = 0;                // likewise; 0: has no socket
  };
  struct Message;

  void receive(const Own& own, std::vector<std::optional<RankState>>* answers);
  bool wait(std::chrono::milliseconds time);  // whether something has come

  const int rank_;
  std::uint64_t token_ = 0;  // of this job: nobody else is answered
  int socket_ = -1, wake_ = -1;
  std::vector<Peer> peers_;
};

}  // namespace paceline::train
