// SPDX-License-Identifier: Apache-2.0
#include "trainer/comm/rank_states.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <random>
#include <span>

namespace paceline::train {
namespace {

constexpr std::size_t most_addresses = 8;

// The address that ranks exchange.
struct Address {
  std::array<char, 64> host{};
  std::array<std::uint32_t, most_addresses> addresses{};
  std::uint32_t count = 0;
  std::uint16_t port = 0;
};

// Adds the interfaces that are up, except the loopback.
void add_interfaces(Address& own) {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return;
  for (const ifaddrs* one = all; one != nullptr && own.count < most_addresses; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET) continue;
    if ((one->ifa_flags & IFF_UP) == 0 || (one->ifa_flags & IFF_LOOPBACK) != 0) continue;
    own.addresses[own.count++] = reinterpret_cast<const sockaddr_in*>(one->ifa_addr)->sin_addr.s_addr;
  }
  freeifaddrs(all);
}

// Opens a socket at a port that the system chooses; −1 on failure. everywhere: reachable from other hosts too.
int open_socket(bool everywhere, std::uint16_t& port) {
  const int number = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (number < 0) return -1;
  sockaddr_in own{};
  own.sin_family = AF_INET;
  own.sin_addr.s_addr = htonl(everywhere ? INADDR_ANY : INADDR_LOOPBACK);
  socklen_t length = sizeof own;
  if (bind(number, reinterpret_cast<const sockaddr*>(&own), sizeof own) != 0 ||
      getsockname(number, reinterpret_cast<sockaddr*>(&own), &length) != 0) {
    close(number);
    return -1;
  }
  port = own.sin_port;
  return number;
}

}  // namespace

struct RankStates::Message {
  std::uint64_t token = 0;
  std::int32_t from = 0;
  std::int32_t answers = 0;  // 0: a question
  RankState state;
};

RankStates::RankStates(Collectives& collectives) : rank_(collectives.rank()) {
  const auto ranks = static_cast<std::size_t>(collectives.size());
  std::array<std::uint64_t, 1> token{rank_ == 0 ? std::random_device{}() | std::uint64_t{std::random_device{}()} << 32
                                                : 0};
  collectives.broadcast(std::span<std::uint64_t>(token), 0);
  token_ = token[0];
  wake_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  Address own;
  gethostname(own.host.data(), own.host.size() - 1);
  const bool everywhere = collectives.local_size() < collectives.size();
  if (ranks > 1) socket_ = open_socket(everywhere, own.port);
  if (everywhere) add_interfaces(own);
  std::vector<Address> all(ranks);
  collectives.allgather(std::as_bytes(std::span(&own, 1)), std::as_writable_bytes(std::span(all)));
  for (const Address& address : all) {
    Peer peer{address.host.data(), {}, address.port};
    if (peer.host == own.host.data()) peer.addresses.push_back(htonl(INADDR_LOOPBACK));
    peer.addresses.insert(peer.addresses.end(), address.addresses.begin(), address.addresses.begin() + address.count);
    peers_.push_back(std::move(peer));
  }
}

RankStates::~RankStates() {
  if (socket_ >= 0) close(socket_);
  if (wake_ >= 0) close(wake_);
}

void RankStates::wake() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(wake_, &one, sizeof one);
}

bool RankStates::wait(std::chrono::milliseconds time) {
  std::array<pollfd, 2> files{pollfd{socket_, POLLIN, 0},
                              pollfd{wake_, POLLIN, 0}};  // poll() ignores negative descriptors
  return poll(files.data(), files.size(), static_cast<int>(time.count())) > 0 && (files[0].revents & POLLIN) != 0;
}

void RankStates::receive(const Own& own, std::vector<std::optional<RankState>>* answers) {
  while (true) {
    Message message;
    sockaddr_in from{};
    socklen_t length = sizeof from;
    const ssize_t got = recvfrom(socket_, &message, sizeof message, 0, reinterpret_cast<sockaddr*>(&from), &length);
    if (got < 0) return;
    if (got != sizeof message || message.token != token_ || message.from < 0) continue;
    const auto peer = static_cast<std::size_t>(message.from);
    if (peer >= peers_.size()) continue;
    if (message.answers != 0) {
      if (answers != nullptr) (*answers)[peer] = message.state;
      continue;
    }
    const Message answer{token_, rank_, 1, own()};
    sendto(socket_, &answer, sizeof answer, 0, reinterpret_cast<const sockaddr*>(&from), length);
  }
}

void RankStates::serve(const Own& own, std::chrono::milliseconds time) {
  if (wait(time)) receive(own, nullptr);
}

std::vector<std::optional<RankState>> RankStates::ask(const Own& own, std::chrono::milliseconds time) {
  using Clock = std::chrono::steady_clock;
  std::vector<std::optional<RankState>> answers(peers_.size());
  answers[static_cast<std::size_t>(rank_)] = own();
  const Clock::time_point end = Clock::now() + time;
  for (int round = 0; Clock::now() < end; ++round) {
    const auto missing = [](const std::optional<RankState>& answer) { return !answer; };
    if (std::ranges::none_of(answers, missing) || socket_ < 0) break;
    if (round % 5 == 0) {  // a datagram may be lost
      for (std::size_t peer = 0; peer < peers_.size(); ++peer) {
        if (answers[peer] || peers_[peer].port == 0) continue;
        const Message question{token_, rank_, 0, {}};
        for (const std::uint32_t address : peers_[peer].addresses) {
          sockaddr_in to{};
          to.sin_family = AF_INET;
          to.sin_port = peers_[peer].port;
          to.sin_addr.s_addr = address;
          sendto(socket_, &question, sizeof question, 0, reinterpret_cast<const sockaddr*>(&to), sizeof to);
        }
      }
    }
    if (wait(std::chrono::milliseconds(100))) receive(own, &answers);
  }
  return answers;
}

}  // namespace paceline::train
