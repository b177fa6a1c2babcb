// SPDX-License-Identifier: Apache-2.0
#include "profiler/inject/sources/clock_exchange/exchange.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "profiler/inject/buffer/drain_wakeup.h"
#include "profiler/inject/buffer/emit_event.h"
#include "profiler/inject/buffer/names.h"
#include "profiler/inject/buffer/session.h"
#include "profiler/inject/process/clock_events.h"
#include "profiler/inject/sources/clock_exchange/beacon.h"
#include "profiler/inject/sources/clock_exchange/packet.h"
#include "profiler/inject/sources/clock_exchange/secret.h"
#include "profiler/inject/sources/sources.h"
#include "profiler/inject/system/descriptor.h"
#include "profiler/inject/system/quiet_thread.h"
#include "profiler/inject/system/system_clock.h"
#include "profiler/launch/environment.h"

namespace paceline::inject {
namespace {

constexpr std::int64_t ms = 1'000'000;

// The limits of one round of questions.
struct Effort {
  int questions;            // at least; up to four times as many if the round trips do not settle
  int first_ms, later_ms;   // the wait for an answer, before and after the first answer
  int misses;               // in a row; then the round ends
  std::int64_t longest_ns;  // of the round, plus a last answer
};
// An answer takes microseconds, but the parent may still be in MPI_Init. The program waits for up to 1 s and 0.5 s, and
// half a second is spare.
constexpr Effort effort_of(ExchangePhase phase) {
  switch (phase) {
    case ExchangePhase::at_init:
      return {100, 50, 50, 3, 1'000 * ms};
    case ExchangePhase::at_finalize:
      return {100, 100, 50, 3, 500 * ms};
    case ExchangePhase::between:
      return {25, 20, 20, 1, 20 * ms};  // the drain has other work
  }
  return {};
}

struct Sample {
  std::uint64_t sent, received, peer;
  std::uint64_t round_trip() const { return received - sent; }
};

// The ten shortest round trips.
struct Samples {
  static constexpr int most = 10;
  Sample best[most];
  int count = 0;

  Sample* longest() {
    return std::max_element(best, best + count,
                            [](const Sample& a, const Sample& b) { return a.round_trip() < b.round_trip(); });
  }
  const Sample* shortest() const {
    return std::min_element(best, best + count,
                            [](const Sample& a, const Sample& b) { return a.round_trip() < b.round_trip(); });
  }
  void add(const Sample& sample) {
    if (count == most) {
      Sample* out = longest();
      if (sample.round_trip() >= out->round_trip()) return;
      std::copy(out + 1, best + count--, out);  // the samples stay in the order of time
    }
    best[count++] = sample;
  }
  // True for ten trips of nearly equal length: this is the time of an undisturbed trip.
  bool settled() { return count == most && longest()->round_trip() <= shortest()->round_trip() * 5 / 4; }
};

// A datagram socket on an address of this machine, and on a port; the system chooses the port if it is 0.
bool open_socket(KeptDescriptor& socket, in_addr_t address, unsigned port) {
  const Descriptor made(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  // The low numbers are the program's.
  if (!made.is_open() || !socket.keep(fcntl(made.number(), F_DUPFD_CLOEXEC, 64))) return false;
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<std::uint16_t>(port));
  to.sin_addr.s_addr = htonl(address);
  return bind(socket.number(), reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0;
}

Beacon own;
Beacon parent;
char beacon_path[sizeof MappedFile::path + 512];
SipKey secret;
// Reserves the port on the loopback until the place in the tree is known.
KeptDescriptor reserved_socket;
KeptDescriptor answering_sockets[most_addresses];
KeptDescriptor asking_socket;
std::atomic<bool> asks{false};

// The state of the asking thread, guarded by `asking`.
pthread_mutex_t asking = PTHREAD_MUTEX_INITIALIZER;
sockaddr_in parent_address{};
bool parent_found = false;
std::uint64_t sequence = 0;

// While MPI_Init runs the drain checks whether all ranks have left their addresses. Clocks that are compared earlier
// give better times for the events before.
pthread_mutex_t finding = PTHREAD_MUTEX_INITIALIZER;
bool found = false;  // guarded by `finding`
std::atomic<std::int64_t> next_look_ns{never};
std::int64_t look_pause_ns = 10 * ms;  // used by the drain; doubles up to 80 ms
int looks_left = 20;
std::int64_t interval_ns = 0;                // between two rounds of phase `between`; 0 = none
std::int64_t next_round_ns = 0;              // used by the drain; 0: the first tick sets it
constexpr int most_ranks_to_look_for = 256;  // a larger directory is not read repeatedly

// Answers the questions that arrive at one socket until the process ends. The thread sleeps in the kernel between
// questions and touches no file.
void* answer(void* argument) {
  pthread_setname_np(pthread_self(), "paceline-clock");
  const KeptDescriptor& socket = *static_cast<const KeptDescriptor*>(argument);
  while (socket.is_ours()) {
    Packet packet;
    sockaddr_in from{};
    socklen_t from_size = sizeof from;
    const ssize_t size =
        recvfrom(socket.number(), &packet, sizeof packet, MSG_TRUNC, reinterpret_cast<sockaddr*>(&from), &from_size);
    const std::uint64_t now = ticks();
    if (size < 0 && errno != EINTR && errno != ECONNREFUSED) return nullptr;
    if (size != static_cast<ssize_t>(sizeof packet)) continue;
    if (packet.seal != seal_of(secret, PacketKind::question, own, packet)) continue;
    packet.ticks = now;
    packet.seal = seal_of(secret, PacketKind::answer, own, packet);
    sendto(socket.number(), &packet, sizeof packet, MSG_DONTWAIT, reinterpret_cast<const sockaddr*>(&from), from_size);
  }
  return nullptr;
}

// True if every child can reach one of the sockets.
bool start_answering(const PlaceInTree& place) {
  in_addr_t addresses[most_addresses];
  const int count = addresses_for(own, place, addresses);
  bool all = true;
  for (int at = 0; at < count; ++at) {
    KeptDescriptor& socket = answering_sockets[at];
    pthread_t thread;
    if (addresses[at] == INADDR_LOOPBACK) {
      socket = reserved_socket;
    } else if (!open_socket(socket, addresses[at], own.port)) {
      socket.close();
      all = false;
      continue;
    }
    all = start_quiet_thread(thread, answer, 128 * 1024, ThreadEnd::detached, &socket) == 0 && all;
  }
  if (std::find(addresses, addresses + count, INADDR_LOOPBACK) == addresses + count) reserved_socket.close();
  return all;
}

Packet next_question() {
  Packet packet{.sequence = ++sequence};
  packet.seal = seal_of(secret, PacketKind::question, parent, packet);
  return packet;
}

void send_question(const Packet& packet, const sockaddr_in& to) {
  sendto(asking_socket.number(), &packet, sizeof packet, MSG_DONTWAIT, reinterpret_cast<const sockaddr*>(&to),
         sizeof to);
}

// Asks all of the parent's addresses. The source of the first answer shows which one can be reached.
void send_everywhere(const Packet& packet) {
  for (int address = 0; address < parent.address_count; ++address) {
    sockaddr_in candidate{};
    candidate.sin_family = AF_INET;
    candidate.sin_port = htons(static_cast<std::uint16_t>(parent.port));
    candidate.sin_addr.s_addr = htonl(parent.addresses[address]);
    send_question(packet, candidate);
  }
}

void wait_at_most(int limit_ms) {
  const timeval limit{0, limit_ms * 1000};
  setsockopt(asking_socket.number(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
}

// Waits for the answer to one question and discards late ones. It is a plain blocking receive, like that of the other
// side, so that both directions take equally long.
bool await(std::int64_t deadline, Sample& sample, sockaddr_in& from) {
  do {
    Packet packet{};
    socklen_t from_size = sizeof from;
    const ssize_t size =
        recvfrom(asking_socket.number(), &packet, sizeof packet, 0, reinterpret_cast<sockaddr*>(&from), &from_size);
    sample.received = ticks();
    sample.peer = packet.ticks;
    if (size == static_cast<ssize_t>(sizeof packet) && packet.sequence == sequence &&
        packet.seal == seal_of(secret, PacketKind::answer, parent, packet)) {
      return true;
    }
  } while (monotonic_ns() < deadline);
  return false;
}

bool find_parent(const Effort& effort, std::int64_t deadline) {
  wait_at_most(effort.first_ms);
  do {
    Sample unused{};
    send_everywhere(next_question());
    parent_found = await(monotonic_ns() + effort.first_ms * ms, unused, parent_address);
  } while (!parent_found && monotonic_ns() < deadline);
  // From now on the system passes on only what comes from there.
  if (parent_found) {
    connect(asking_socket.number(), reinterpret_cast<const sockaddr*>(&parent_address), sizeof parent_address);
  }
  return parent_found;
}

void ask(const Effort& effort, std::int64_t longest_trip_ns, std::int64_t deadline, Samples& samples) {
  if (!parent_found && !find_parent(effort, deadline)) return;
  wait_at_most(effort.later_ms);
  int misses = 0;
  for (int question = 0; question < 4 * effort.questions && misses < effort.misses; ++question) {
    const std::int64_t now = monotonic_ns();
    if (now >= deadline || (question >= effort.questions && samples.settled())) return;
    const Packet packet = next_question();
    Sample sample{};
    sockaddr_in from{};
    sample.sent = ticks();
    send_question(packet, parent_address);
    if (!await(now + effort.later_ms * ms, sample, from)) {
      ++misses;
    } else {
      misses = 0;
      const double trip_ns = 1e9 * static_cast<double>(sample.round_trip()) / clock_state.ticks_per_second;
      if (trip_ns < static_cast<double>(longest_trip_ns)) samples.add(sample);
    }
  }
}

// Takes the lock, until the deadline at most: the other thread may be waiting for an answer.
bool lock_asking(std::int64_t deadline) {
  while (pthread_mutex_trylock(&asking) != 0) {
    if (monotonic_ns() >= deadline) return false;
    usleep(1000);
  }
  return true;
}

void record_error(const Samples& samples) {
  if (samples.count == 0) return;
  char text[32];
  snprintf(text, sizeof text, "%.0f",
           0.5e9 * static_cast<double>(samples.shortest()->round_trip()) / clock_state.ticks_per_second);
  record_setting("clock_error_ns", text);
}

}  // namespace

void publish_clock() {
  const format::FileHeader& header = *session.file.header;
  if (header.rank < 0 || header.world_size <= 1 || beacon_path[0] != '\0') return;
  own.job = session.file.job;
  own.domain = session.file.clock_domain;
  own.rank = header.rank;
  sockaddr_in bound{};
  socklen_t bound_size = sizeof bound;
  if (!share_secret(session.file.directory, own.job, secret) || !open_socket(reserved_socket, INADDR_LOOPBACK, 0) ||
      getsockname(reserved_socket.number(), reinterpret_cast<sockaddr*>(&bound), &bound_size) != 0) {
    return;
  }
  own.port = ntohs(bound.sin_port);
  list_addresses(own);
  char name[256];
  print_beacon(own, name, sizeof name);
  snprintf(beacon_path, sizeof beacon_path, "%s/%s", session.file.directory, name);
  const Descriptor file(open(beacon_path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (interval_ns == 0 || header.world_size > most_ranks_to_look_for) return;
  next_look_ns.store(monotonic_ns() + look_pause_ns, std::memory_order_release);
  wake_drain();
}

namespace {

// Called with `finding` held.
void take_place(const PlaceInTree& place) {
  found = true;
  const bool answering = place.answers && start_answering(place);
  if (!place.answers) reserved_socket.close();
  if (place.answers && !place.asks) record_setting("clock_exchange", answering ? "reference" : "none");
  if (!place.asks) return;
  parent = place.parent;
  sequence = ticks();  // an answer that somebody kept from an earlier run has another number
  asks = open_socket(asking_socket, INADDR_ANY, 0);
  if (!asks) record_setting("clock_exchange", "none");
}

}  // namespace

void find_clocks() {
  if (beacon_path[0] == '\0') return;
  next_look_ns.store(never, std::memory_order_relaxed);
  pthread_mutex_lock(&finding);  // the drain reads a directory and asks for 20 ms at most
  if (!found) take_place(find_place(own, session.file.directory));
  pthread_mutex_unlock(&finding);
}

int exchange_clocks(ExchangePhase phase, std::int64_t longest_trip_ns) {
  if (!asks || !asking_socket.is_ours()) return 0;
  const bool program_waits = phase != ExchangePhase::between;
  const Effort effort = effort_of(phase);
  const std::int64_t began = monotonic_ns(), deadline = began + effort.longest_ns;
  if (!lock_asking(program_waits ? deadline : began)) return 0;
  Samples samples;
  ask(effort, longest_trip_ns, deadline, samples);
  pthread_mutex_unlock(&asking);
  for (int sample = 0; sample < samples.count; ++sample) {
    emit_at(samples.best[sample].sent, events::ClockExchange{.peer_rank = parent.rank,
                                                             .phase = static_cast<std::uint32_t>(phase),
                                                             .received_ticks = samples.best[sample].received,
                                                             .peer_ticks = samples.best[sample].peer});
  }
  if (!program_waits) return samples.count;
  if (phase == ExchangePhase::at_init) record_setting("clock_exchange", samples.count > 0 ? "done" : "none");
  record_error(samples);
  return samples.count;
}

namespace {

// While MPI_Init runs: finds the ranks as soon as all of them have left their addresses, and asks at once. Later stamps
// say less about what the clocks showed at the start. It looks twenty times, over 1.5 s, in jobs of 256 ranks at most.
void look_for_clocks() {
  std::int64_t due = next_look_ns.load(std::memory_order_acquire);
  if (monotonic_ns() < due || pthread_mutex_trylock(&finding) != 0) return;
  if (next_look_ns.load(std::memory_order_acquire) == never) {  // MPI_Init has just ended, and its own round comes next
    pthread_mutex_unlock(&finding);
    return;
  }
  if (!found) {
    const PlaceInTree place = find_place(own, session.file.directory);
    if (place.ranks >= session.file.header->world_size) take_place(place);
  }
  // An answer that came late on a busy machine is too inaccurate, and would end the search for a better one.
  constexpr std::int64_t longest_trip_ns = 3 * ms;
  const bool done = found && (!asks || exchange_clocks(ExchangePhase::between, longest_trip_ns) > 0);
  pthread_mutex_unlock(&finding);
  look_pause_ns = std::min(2 * look_pause_ns, 80 * ms);
  const bool again = !done && --looks_left > 0;
  // Does nothing if find_clocks() has ended the search meanwhile.
  next_look_ns.compare_exchange_strong(due, again ? monotonic_ns() + look_pause_ns : never);
}

void read_interval() {
  const char* text = getenv(record::env_clock_interval);
  const double seconds = text != nullptr ? strtod(text, nullptr) : 10;
  if (seconds > 0) interval_ns = static_cast<std::int64_t>(std::clamp(seconds, 0.1, 1e6) * 1e9);
}

std::int64_t tick(std::int64_t now_ns) {
  look_for_clocks();
  if (interval_ns > 0 && now_ns >= next_round_ns) {
    if (next_round_ns != 0) exchange_clocks(ExchangePhase::between);
    next_round_ns = now_ns + interval_ns;
  }
  return std::min(next_look_ns.load(std::memory_order_acquire), interval_ns > 0 ? next_round_ns : never);
}

// Removes the address file.
void withdraw_clock() {
  if (beacon_path[0] == '\0') return;
  unlink(beacon_path);
  beacon_path[0] = '\0';
  remove_secret(session.file.directory, own.job);
}

// In a forked child the address file is the parent's.
void forget_clock() {
  beacon_path[0] = '\0';
  asks = false;
  next_look_ns = never;
  next_round_ns = 0;
  pthread_mutex_init(&asking, nullptr);
  pthread_mutex_init(&finding, nullptr);
}

}  // namespace

const Source clock_exchange_source = {
    .start = read_interval,
    .tick = tick,
    .closed = withdraw_clock,
    .reset_in_child = forget_clock,
};

}  // namespace paceline::inject
