// SPDX-License-Identifier: Apache-2.0
// Clocks of ranks on different machines, simulated by one machine with a rank that has another clock.
#define XXH_INLINE_ALL
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <xxhash.h>

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <fstream>
#include <iterator>
#include <optional>
#include <thread>

#include "profiler/inject/sources/clock_exchange/packet.h"
#include "tests/integration/record/run.h"

namespace paceline::test {
namespace {

using format::EventType;

class RecordClock : public RecordTest {};

constexpr double skew_ns = 7'000'000;
const char* const other_clock = "PACELINE_TEST_CLOCK=domain=other,skew_ns=7000000,drift_ppm=50";

TEST_F(RecordClock, RanksOfOneMachineNeedNoExchange) {
  const Ended ended = run(mpirun() + "-n 2 " + recorded() + PROGRAM);
  EXPECT_TRUE(ended.by_itself(0)) << ended.err;
  for (const RecordedFile& file : files()) {
    EXPECT_TRUE(file.of(EventType::clock_exchange).empty());
    EXPECT_EQ(file.setting("clock_exchange"), "");
  }
  for (const auto& entry : std::filesystem::directory_iterator(directory / "run")) {
    EXPECT_TRUE(entry.path().filename().string().ends_with(".pace")) << entry.path();
  }
}

// Rank 1's clock is 7 ms ahead and runs 50 ppm fast. Its samples show that to half of their round trips.
int of_phase(const std::vector<RecordedEvent>& samples, std::uint64_t phase) {
  return static_cast<int>(
      std::ranges::count(samples, phase, [](const RecordedEvent& it) { return it.head.low >> 32; }));
}

TEST_F(RecordClock, TheOffsetLiesWithinHalfTheRoundTrip) {
  const Ended ended = run(mpirun() + "-n 1 " + recorded() + PROGRAM + " : -n 1 " + recorded(other_clock) + PROGRAM);
  EXPECT_TRUE(ended.by_itself(0)) << ended.err;
  const std::vector<RecordedFile> ranks = files();
  ASSERT_EQ(ranks.size(), 2u);
  EXPECT_EQ(ranks[0].setting("clock_exchange"), "reference");
  EXPECT_EQ(ranks[1].setting("clock_exchange"), "done");
  EXPECT_NE(ranks[0].file.boot_id, ranks[1].file.boot_id);
  EXPECT_TRUE(ranks[0].of(EventType::clock_exchange).empty());
  auto samples = ranks[1].of(EventType::clock_exchange);
  std::ranges::sort(samples, {}, &RecordedEvent::ticks);  // they are of two threads
  EXPECT_EQ(of_phase(samples, 0), 10);
  EXPECT_EQ(of_phase(samples, 1), 10);
  EXPECT_LE(of_phase(samples, 2), 10);  // while MPI_Init ran, where there was time
  const format::FileHeader& header = ranks[1].file.header;
  const double ns_per_tick = 1e9 / header.ticks_per_second;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    EXPECT_EQ(static_cast<std::uint32_t>(samples[i].head.low), 0u);  // asked rank 0
    constexpr int order[] = {1, 2, 0};                               // while MPI_Init runs, at its end, at MPI_Finalize
    if (i > 0) {
      EXPECT_LE(order[samples[i - 1].head.low >> 32], order[samples[i].head.low >> 32]);
    }
    const double sent = static_cast<double>(samples[i].ticks);
    const double received = static_cast<double>(samples[i].extension[0].high - header.start_ticks);
    const double peer =
        static_cast<double>(static_cast<std::int64_t>(samples[i].extension[0].low - header.start_ticks));
    const double half_round_trip = (received - sent) / 2 * ns_per_tick;
    const double offset = ((sent + received) / 2 - peer) * ns_per_tick;
    const double drift = 50e-6 * sent * ns_per_tick;  // since the recorder began
    EXPECT_GT(half_round_trip, 0);
    EXPECT_LT(half_round_trip, 2e6);
    EXPECT_NEAR(offset, skew_ns + drift, half_round_trip + 1000) << "sample " << i;
  }
}

// The leaders of five clocks: each asks the leader whose number has one bit less.
TEST_F(RecordClock, DomainsAskAlongATree) {
  std::string command = mpirun();
  for (int rank = 0; rank < 5; ++rank) {
    const std::string number = std::to_string(rank);
    command += (rank > 0 ? " : -n 1 " : "-n 1 ") +
               recorded("PACELINE_TEST_CLOCK=domain=" + number + ",skew_ns=" + number + "000000") + PROGRAM;
  }
  const Ended ended = run(command);
  EXPECT_TRUE(ended.by_itself(0)) << ended.err;
  const std::vector<RecordedFile> ranks = files();
  ASSERT_EQ(ranks.size(), 5u);
  EXPECT_EQ(ranks[0].setting("clock_exchange"), "reference");
  const std::uint32_t parents[] = {0, 0, 0, 2, 0};
  for (std::size_t rank = 1; rank < 5; ++rank) {
    EXPECT_EQ(ranks[rank].setting("clock_exchange"), "done");
    EXPECT_GT(atof(ranks[rank].setting("clock_error_ns").c_str()), 0);
    const auto samples = ranks[rank].of(EventType::clock_exchange);
    EXPECT_EQ(of_phase(samples, 0), 10);
    EXPECT_EQ(of_phase(samples, 1), 10);
    EXPECT_LE(of_phase(samples, 2), 10);
    for (const RecordedEvent& sample : samples) EXPECT_EQ(static_cast<std::uint32_t>(sample.head.low), parents[rank]);
  }
}

// On a busy machine MPI_Init may end before the drain has run, but not every time.
TEST_F(RecordClock, ClocksAreComparedWhileInitRuns) {
  int attempts = 0, samples = 0;
  while (samples == 0 && ++attempts <= 8) {
    std::filesystem::remove_all(directory / "run");
    const Ended ended = run(mpirun() + "-n 1 " + recorded() + PROGRAM + " : -n 1 " + recorded(other_clock) + PROGRAM);
    ASSERT_TRUE(ended.by_itself(0)) << ended.err;
    samples = of_phase(files().at(1).of(EventType::clock_exchange), 2);
  }
  EXPECT_GT(samples, 0) << attempts << " attempts";
}

// Four rounds of ten samples in half a second. On a busy machine a round may get fewer answers or come late.
bool compared_every_100_ms(const std::vector<RecordedFile>& ranks) {
  struct Round {
    double begin_s, end_s;
    int samples;
  };
  std::vector<Round> rounds;
  auto samples = ranks.at(1).of(EventType::clock_exchange);
  std::ranges::sort(samples, {}, &RecordedEvent::ticks);
  for (const RecordedEvent& sample : samples) {
    if (sample.head.low >> 32 != 2) continue;
    const double s = static_cast<double>(sample.ticks) / ranks[1].file.header.ticks_per_second;
    if (rounds.empty() || s > rounds.back().end_s + 0.05) rounds.push_back({s, s, 0});  // a round takes 20 ms
    rounds.back().end_s = s;
    ++rounds.back().samples;
  }
  for (std::size_t last = 3; last < rounds.size(); ++last) {
    const bool whole =
        std::all_of(&rounds[last - 3], &rounds[last] + 1, [](const Round& it) { return it.samples == 10; });
    if (whole && rounds[last].begin_s - rounds[last - 3].begin_s < 0.5) return true;
  }
  return false;
}

TEST_F(RecordClock, ClocksAreComparedAgainWhileTheProgramRuns) {
  const std::string often = "PACELINE_CLOCK_INTERVAL=0.1 ", program = CLOCK_MARKS " 60 seen";
  Ended ended;
  std::thread job([&] {
    ended =
        run(mpirun() + "-n 1 " + recorded(often) + program + " : -n 1 " + recorded(often + other_clock) + program, 90);
  });
  wait_until(compared_every_100_ms);
  std::ofstream(directory / "seen");
  job.join();
  EXPECT_TRUE(ended.by_itself(0)) << ended.err;
  const std::vector<RecordedFile> ranks = files();
  ASSERT_EQ(ranks.size(), 2u);
  EXPECT_GE(of_phase(ranks[1].of(EventType::clock_exchange), 2), 40);
  EXPECT_TRUE(compared_every_100_ms(ranks));
}

TEST_F(RecordClock, TheSystemClockCanBeSelected) {
  const Ended ended = run(mpirun() + "-n 2 " + recorded("PACELINE_CLOCK=monotonic_raw") + PROGRAM + " : -n 1 " +
                          recorded("PACELINE_CLOCK=tsc") + PROGRAM);
  EXPECT_TRUE(ended.by_itself(0)) << ended.err;
  EXPECT_EQ(ended.recorder_lines(), 0) << ended.err;
  const std::vector<RecordedFile> ranks = files();
  ASSERT_EQ(ranks.size(), 3u);
  for (std::size_t rank = 0; rank < 2; ++rank) {
    const format::FileHeader& header = ranks[rank].file.header;
    EXPECT_EQ(header.clock_source, format::ClockSource::monotonic_raw);
    EXPECT_EQ(header.ticks_per_second, 1e9);
    for (const RecordedEvent& pair : ranks[rank].of(EventType::clock_pair)) {
      const auto apart = static_cast<std::int64_t>(pair.extension[0].high - header.start_ticks - pair.ticks);
      EXPECT_LE(std::abs(apart),
                static_cast<std::int64_t>(pair.extension[0].low));  // both readings are of the same clock
    }
  }
  // If the CPU's counter is trusted, rank 2 has another clock than its neighbours and compares it.
  if (ranks[2].file.header.clock_source == format::ClockSource::tsc) {
    EXPECT_EQ(ranks[0].setting("clock_exchange"), "reference");
    EXPECT_EQ(ranks[2].setting("clock_exchange"), "done");
  }
}

TEST_F(RecordClock, AnUnknownClockCostsOneLine) {
  const Ended ended = run(recorded("PACELINE_CLOCK=sundial") + WAYS " return");
  EXPECT_TRUE(ended.by_itself(0)) << ended.err;
  EXPECT_EQ(ended.recorder_lines(), 1) << ended.err;
  EXPECT_NE(ended.err.find("sundial"), std::string::npos) << ended.err;
  EXPECT_EQ(files().size(), 1u);
}

// A recorder that left its address but does not answer any more: the program goes on after 2 s at most, and the trace
// shows it.
TEST_F(RecordClock, ARankThatDoesNotAnswerIsGivenUp) {
  std::filesystem::create_directory(directory / "run");
  char name[128];
  snprintf(name, sizeof name, ".clock-%016" PRIx64 "-%016x-0-9-7f000001", XXH3_64bits("test", 4), 1);
  std::ofstream(directory / "run" / name);
  const Ended ended = run(mpirun() + "-n 1 " PROGRAM " : -n 1 " + recorded() + PROGRAM);
  EXPECT_TRUE(ended.by_itself(0)) << ended.err;
  const std::vector<RecordedFile> ranks = files();
  ASSERT_EQ(ranks.size(), 1u);
  EXPECT_EQ(ranks[0].setting("clock_exchange"), "none");
  EXPECT_TRUE(ranks[0].of(EventType::clock_exchange).empty());
  EXPECT_EQ(ranks[0].named(EventType::mpi_begin_coll, "MPI_Allreduce").size(), 100u);
  // Questions are asked after MPI_Init and before MPI_Finalize.
  const auto ticks_of = [&](EventType type, const char* name) { return ranks[0].named(type, name).at(0).ticks; };
  const std::uint64_t init_end = ticks_of(EventType::mpi_end, "MPI_Init");
  const std::uint64_t finalize = ticks_of(EventType::mpi_begin, "MPI_Finalize");
  std::uint64_t next = finalize, last = init_end;
  for (const RecordedEvent& event : ranks[0].events) {
    if (event.type != EventType::mpi_begin_coll && event.type != EventType::mpi_end) continue;
    if (event.ticks > init_end) next = std::min(next, event.ticks);
    if (event.ticks < finalize) last = std::max(last, event.ticks);
  }
  const double waited = static_cast<double>(next - init_end + finalize - last);
  EXPECT_LT(waited / ranks[0].file.header.ticks_per_second, 2.0);
}

// The test vector of the algorithm's authors: the key 00 … 0f, the message of eight bytes 00 … 07.
TEST(SipHash, IsThatOfItsAuthors) {
  const inject::SipKey key{0x0706050403020100, 0x0f0e0d0c0b0a0908};
  const std::uint64_t message[] = {0x0706050403020100};
  EXPECT_EQ(inject::siphash(key, message), 0x93f5f5799a932462);
  EXPECT_EQ(inject::siphash(key, {}), 0x726fdb47dd0e0e31);
}

// Somebody on the network, or another user of the machine.
class Stranger {
 public:
  Stranger(in_addr_t address, unsigned port) : socket_(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<std::uint16_t>(port));
    to.sin_addr.s_addr = htonl(address);
    EXPECT_EQ(connect(socket_, reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
  }
  ~Stranger() { close(socket_); }
  Stranger(const Stranger&) = delete;

  void send(const void* bytes, std::size_t size) const {
    EXPECT_EQ(::send(socket_, bytes, size, 0), static_cast<ssize_t>(size));
  }
  // What comes first; nothing if the port is closed.
  std::optional<inject::Packet> receive() const {
    pollfd waited{socket_, POLLIN, 0};
    EXPECT_EQ(poll(&waited, 1, 30'000), 1) << "neither an answer nor an error";
    inject::Packet packet;
    if (recv(socket_, &packet, sizeof packet, 0) != static_cast<ssize_t>(sizeof packet)) return std::nullopt;
    return packet;
  }

 private:
  int socket_;
};

// The beacon of a rank; its port is 0 if there is none.
inject::Beacon beacon_of(const std::filesystem::path& directory, int rank) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    inject::Beacon beacon;
    const int read = sscanf(entry.path().filename().c_str(), ".clock-%16" SCNx64 "-%16" SCNx64 "-%d-%u", &beacon.job,
                            &beacon.domain, &beacon.rank, &beacon.port);
    if (read == 4 && beacon.rank == rank) return beacon;
  }
  return {};
}

in_addr_t address_of_an_interface() {
  in_addr_t found = 0;
  ifaddrs* interfaces = nullptr;
  if (getifaddrs(&interfaces) != 0) return 0;
  for (const ifaddrs* at = interfaces; at != nullptr; at = at->ifa_next) {
    if (at->ifa_addr == nullptr || at->ifa_addr->sa_family != AF_INET || (at->ifa_flags & IFF_LOOPBACK) != 0) continue;
    if ((at->ifa_flags & IFF_UP) != 0)
      found = ntohl(reinterpret_cast<const sockaddr_in*>(at->ifa_addr)->sin_addr.s_addr);
  }
  freeifaddrs(interfaces);
  return found;
}

TEST_F(RecordClock, OnlyWhoKnowsTheSecretGetsAnAnswer) {
  const std::string often = "PACELINE_CLOCK_INTERVAL=0.1 ", program = CLOCK_MARKS " 60 seen";
  Ended ended;
  std::thread job([&] {
    ended =
        run(mpirun() + "-n 1 " + recorded(often) + program + " : -n 1 " + recorded(often + other_clock) + program, 90);
  });
  const auto done = [](const std::vector<RecordedFile>& ranks) {
    return ranks.size() == 2 && ranks[1].setting("clock_exchange") == "done";
  };
  wait_until(done);
  const inject::Beacon asked = beacon_of(directory / "run", 0);
  EXPECT_GT(asked.port, 0u);

  char name[64];
  snprintf(name, sizeof name, ".clock-%016" PRIx64 ".key", asked.job);
  struct stat status {};
  EXPECT_EQ(stat((directory / "run" / name).c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0600u);
  inject::SipKey secret;
  std::ifstream(directory / "run" / name, std::ios::binary).read(reinterpret_cast<char*>(&secret), sizeof secret);

  const auto question = [&](const inject::SipKey& key, std::uint64_t sequence) {
    inject::Packet packet{.sequence = sequence};
    packet.seal = seal_of(key, inject::PacketKind::question, asked, packet);
    return packet;
  };
  // What the directory shows to everybody is not enough. Answers come in the order of the questions, so the answer to
  // the last one shows that the others got none.
  const Stranger here(INADDR_LOOPBACK, asked.port);
  for (std::uint64_t number = 1; number < 50; ++number) {
    const inject::Packet forged = question({secret.low ^ number, secret.high}, number);
    here.send(&forged, sizeof forged);
    here.send(&forged, number % sizeof forged);
  }
  const inject::Packet known = question(secret, 50);
  here.send(&known, sizeof known);
  const std::optional<inject::Packet> answer = here.receive();
  EXPECT_TRUE(answer);
  if (answer) {
    EXPECT_EQ(answer->sequence, 50u);
    EXPECT_EQ(answer->seal, seal_of(secret, inject::PacketKind::answer, asked, *answer));
  }
  // Both ranks are on this machine, so the port is closed on its other interfaces.
  if (const in_addr_t outside = address_of_an_interface(); outside != 0) {
    const Stranger there(outside, asked.port);
    there.send(&known, sizeof known);
    EXPECT_FALSE(there.receive());
  }

  std::ofstream(directory / "seen");
  job.join();
  EXPECT_TRUE(ended.by_itself(0)) << ended.err;
  EXPECT_EQ(ended.recorder_lines(), 0) << ended.err;
  EXPECT_EQ(of_phase(files().at(1).of(EventType::clock_exchange), 1), 10);
  for (const auto& entry : std::filesystem::directory_iterator(directory / "run")) {
    EXPECT_TRUE(entry.path().filename().string().ends_with(".pace")) << entry.path();
  }
}

// Another user made the file, or can read it.
TEST_F(RecordClock, ASecretThatOthersKnowIsNotUsed) {
  std::filesystem::create_directory(directory / "run");
  char name[64];
  snprintf(name, sizeof name, ".clock-%016" PRIx64 ".key", XXH3_64bits("test", 4));
  std::ofstream(directory / "run" / name) << "sixteen letters!";
  const Ended ended = run(mpirun() + "-n 1 " + recorded() + PROGRAM + " : -n 1 " + recorded(other_clock) + PROGRAM);
  EXPECT_TRUE(ended.by_itself(0)) << ended.err;
  for (const RecordedFile& file : files()) EXPECT_TRUE(file.of(EventType::clock_exchange).empty());
  EXPECT_EQ(files().size(), 2u);
}

}  // namespace
}  // namespace paceline::test
