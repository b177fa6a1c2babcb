#include "profiler/inject/clock_exchange.h"

#define XXH_INLINE_ALL
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <inttypes.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <atomic>
#include <string_view>

#include "profiler/inject/names.h"
#include "profiler/inject/recorder.h"
#include "profiler/inject/session.h"

namespace paceline::inject {
namespace {

constexpr int most_addresses = 8;
constexpr int first_answer_ms = 1000;
constexpr int later_answers_ms = 50;
constexpr std::int64_t whole_exchange_ns = 2'000'000'000;

struct Beacon {
  std::uint64_t job = 0;
  std::uint64_t domain = 0;
  int rank = -1;
  unsigned port = 0;
  in_addr_t addresses[most_addresses] = {};
  int address_count = 0;
};

// Question and answer have the same length, so that a forged question gains nothing.
struct Packet {
  std::uint64_t token;
  std::uint64_t sequence;
  std::uint64_t ticks;
};

struct Sample {
  std::uint64_t sent, received, peer;
  std::uint64_t round_trip() const { return received - sent; }
};

Beacon own;
Beacon reference;
char beacon_path[sizeof OutputFile::path + 512];
int own_socket = -1;
std::atomic<bool> asks{false};  // this process is the one of its clock that asks the reference
int peer_socket = -1;
pthread_mutex_t asking = PTHREAD_MUTEX_INITIALIZER;

std::uint64_t token_of(const Beacon& beacon) {
  return beacon.job ^ (beacon.domain * 0x9e3779b97f4a7c15) ^ 0x636c6f636b;
}

void record_outcome(const char* outcome) {
  const std::uint32_t key = intern(std::string_view("clock_exchange"));
  emit_surely(EventType::setting, key | std::uint64_t{intern(std::string_view(outcome))} << 32);
}

void list_addresses(Beacon& beacon) {
  ifaddrs* interfaces = nullptr;
  if (getifaddrs(&interfaces) == 0) {
    for (const ifaddrs* at = interfaces; at != nullptr; at = at->ifa_next) {
      if (at->ifa_addr == nullptr || at->ifa_addr->sa_family != AF_INET) continue;
      if ((at->ifa_flags & IFF_UP) == 0 || (at->ifa_flags & IFF_LOOPBACK) != 0) continue;
      if (beacon.address_count == most_addresses - 1) break;
      beacon.addresses[beacon.address_count++] =
          ntohl(reinterpret_cast<const sockaddr_in*>(at->ifa_addr)->sin_addr.s_addr);
    }
    freeifaddrs(interfaces);
  }
  beacon.addresses[beacon.address_count++] = INADDR_LOOPBACK;  // containers without a network, on one machine
}

void print_beacon(const Beacon& beacon, char* out, std::size_t capacity) {
  int length = snprintf(out, capacity, ".clock-%016" PRIx64 "-%016" PRIx64 "-%d-%u", beacon.job, beacon.domain,
                        beacon.rank, beacon.port);
  for (int address = 0; address < beacon.address_count; ++address) {
    length += snprintf(out + length, capacity - static_cast<std::size_t>(length), "-%08x", beacon.addresses[address]);
  }
}

bool parse_beacon(const char* name, Beacon& beacon) {
  int length = 0;
  if (sscanf(name, ".clock-%16" SCNx64 "-%16" SCNx64 "-%d-%u%n", &beacon.job, &beacon.domain, &beacon.rank,
             &beacon.port, &length) != 4) {
    return false;
  }
  for (const char* at = name + length; *at == '-' && beacon.address_count < most_addresses; at += 9) {
    if (sscanf(at, "-%8x", &beacon.addresses[beacon.address_count]) != 1) break;
    ++beacon.address_count;
    if (strlen(at) < 9) break;
  }
  return beacon.address_count > 0 && beacon.port > 0 && beacon.port < 65536;
}

int open_socket() {
  const int made = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (made < 0) return -1;
  sockaddr_in any{};
  any.sin_family = AF_INET;
  any.sin_addr.s_addr = htonl(INADDR_ANY);
  if (bind(made, reinterpret_cast<const sockaddr*>(&any), sizeof any) == 0) return made;
  close(made);
  return -1;
}

// Answers until the process ends. It sleeps in the kernel between questions, and touches no file.
void* answer(void*) {
  pthread_setname_np(pthread_self(), "paceline-clock");
  const std::uint64_t token = token_of(own);
  for (;;) {
    Packet packet;
    sockaddr_in from{};
    socklen_t from_size = sizeof from;
    const ssize_t size =
        recvfrom(own_socket, &packet, sizeof packet, 0, reinterpret_cast<sockaddr*>(&from), &from_size);
    if (size < 0 && errno != EINTR && errno != ECONNREFUSED) return nullptr;
    if (size != static_cast<ssize_t>(sizeof packet) || packet.token != token) continue;
    packet.ticks = ticks();
    sendto(own_socket, &packet, sizeof packet, MSG_DONTWAIT, reinterpret_cast<const sockaddr*>(&from), from_size);
  }
}

void start_answering() {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attributes, 128 * 1024);
  pthread_t thread;
  const bool started = pthread_create(&thread, &attributes, answer, nullptr) == 0;
  pthread_attr_destroy(&attributes);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  record_outcome(started ? "reference" : "none");
}

std::int64_t monotonic_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

// Waits for the answer to one question. The sender is noted, so that later questions go where an answer came from.
bool await(std::uint64_t sequence, int limit_ms, Sample& sample, sockaddr_in& from) {
  const std::int64_t deadline = monotonic_ns() + std::int64_t{limit_ms} * 1'000'000;
  for (;;) {
    const std::int64_t left = deadline - monotonic_ns();
    if (left <= 0) return false;
    pollfd readable{peer_socket, POLLIN, 0};
    if (poll(&readable, 1, static_cast<int>(left / 1'000'000) + 1) <= 0) continue;
    Packet packet;
    socklen_t from_size = sizeof from;
    const ssize_t size =
        recvfrom(peer_socket, &packet, sizeof packet, MSG_DONTWAIT, reinterpret_cast<sockaddr*>(&from), &from_size);
    sample.received = ticks();
    if (size != static_cast<ssize_t>(sizeof packet) || packet.token != token_of(reference)) continue;
    if (packet.sequence != sequence) continue;  // a late one
    sample.peer = packet.ticks;
    return true;
  }
}

// Asks up to `questions` times; keeps the best in `samples`. Returns how many were answered, at most `keep`.
int ask(int questions, Sample* samples, int keep) {
  static std::uint64_t sequence = 0;
  const std::int64_t deadline = monotonic_ns() + whole_exchange_ns;
  sockaddr_in to{};
  bool found = false;
  int kept = 0;
  int unanswered = 0;
  for (int question = 0; question < questions && monotonic_ns() < deadline && unanswered < 3; ++question) {
    Packet packet{token_of(reference), ++sequence, 0};
    Sample sample{};
    sample.sent = ticks();
    if (found) {
      sendto(peer_socket, &packet, sizeof packet, MSG_DONTWAIT, reinterpret_cast<const sockaddr*>(&to), sizeof to);
    } else {
      for (int address = 0; address < reference.address_count; ++address) {
        sockaddr_in candidate{};
        candidate.sin_family = AF_INET;
        candidate.sin_port = htons(static_cast<std::uint16_t>(reference.port));
        candidate.sin_addr.s_addr = htonl(reference.addresses[address]);
        sendto(peer_socket, &packet, sizeof packet, MSG_DONTWAIT, reinterpret_cast<const sockaddr*>(&candidate),
               sizeof candidate);
      }
    }
    sockaddr_in from{};
    if (!await(sequence, found ? later_answers_ms : first_answer_ms / 3, sample, from)) {
      ++unanswered;
      continue;
    }
    unanswered = 0;
    if (!found) {  // that one was sent many times: not a measurement
      found = true;
      to = from;
      continue;
    }
    if (kept < keep) {
      samples[kept++] = sample;
      continue;
    }
    Sample* slowest = std::max_element(
        samples, samples + kept, [](const Sample& a, const Sample& b) { return a.round_trip() < b.round_trip(); });
    if (sample.round_trip() >= slowest->round_trip()) continue;
    for (Sample* at = slowest; at + 1 < samples + kept; ++at) *at = at[1];  // they stay in order of time
    samples[kept - 1] = sample;
  }
  return kept;
}

}  // namespace

void publish_clock() {
  const format::FileHeader& header = *session.file.header;
  if (header.rank < 0 || header.world_size <= 1 || own_socket >= 0) return;
  own.job = session.file.job;
  own.domain = session.file.clock_domain;
  own.rank = header.rank;
  own_socket = open_socket();
  sockaddr_in bound{};
  socklen_t bound_size = sizeof bound;
  if (own_socket < 0 || getsockname(own_socket, reinterpret_cast<sockaddr*>(&bound), &bound_size) != 0) return;
  own.port = ntohs(bound.sin_port);
  list_addresses(own);
  char name[256];
  print_beacon(own, name, sizeof name);
  snprintf(beacon_path, sizeof beacon_path, "%s/%s", session.file.directory, name);
  const int file = open(beacon_path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (file >= 0) close(file);
}

void find_clocks() {
  if (own_socket < 0) return;
  DIR* list = opendir(session.file.directory);
  if (list == nullptr) return;
  reference = own;
  int lowest_here = own.rank;
  bool other_clocks = false;
  while (const dirent* entry = readdir(list)) {
    Beacon beacon;
    if (!parse_beacon(entry->d_name, beacon) || beacon.job != own.job) continue;
    if (beacon.domain == own.domain) {
      lowest_here = std::min(lowest_here, beacon.rank);
    } else {
      other_clocks = true;
    }
    if (beacon.rank < reference.rank) reference = beacon;
  }
  closedir(list);
  if (!other_clocks) return;
  if (reference.rank == own.rank) {
    start_answering();
  } else if (reference.domain != own.domain && lowest_here == own.rank) {
    peer_socket = open_socket();
    asks = peer_socket >= 0;
    if (!asks) record_outcome("none");
  }
}

void exchange_clocks(ExchangePhase phase) {
  if (!asks) return;
  pthread_mutex_lock(&asking);
  constexpr int keep = 10;
  Sample samples[keep];
  const int answered = ask(phase == ExchangePhase::between ? 20 : 100, samples, keep);
  pthread_mutex_unlock(&asking);
  for (int sample = 0; sample < answered; ++sample) {
    emit_at(samples[sample].sent, EventType::clock_exchange,
            static_cast<std::uint32_t>(reference.rank) | std::uint64_t{static_cast<std::uint32_t>(phase)} << 32,
            Slot{samples[sample].received, samples[sample].peer});
  }
  if (phase == ExchangePhase::at_init) {
    record_outcome(answered > 0 ? "done" : "none");
    asks = answered > 0;  // whoever is out of reach stays so
  }
}

void withdraw_clock() {
  if (beacon_path[0] == '\0') return;
  unlink(beacon_path);
  beacon_path[0] = '\0';
}

void forget_clock() {
  beacon_path[0] = '\0';
  asks = false;
  pthread_mutex_init(&asking, nullptr);
}

}  // namespace paceline::inject
