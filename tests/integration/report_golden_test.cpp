// SPDX-License-Identifier: Apache-2.0
// The figures of hand-made .pace files in the output of `paceline report`, worked out on paper.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>
#include <string>

#include "profiler/format/writer.h"
#include "tests/integration/command.h"
#include "tests/unit/analysis/pace_file.h"

namespace paceline::analysis {
namespace {

using format::EventType;
using format::MpiId;
using nlohmann::json;
using ::testing::HasSubstr;
using testing::PaceFile;

constexpr std::uint64_t second = 1'000'000'000;

class GoldenReport : public CommandTest {
 protected:
  // A file of a rank of a job, with MPI_COMM_WORLD and NCCL's communicator.
  static PaceFile member(int rank, int ranks) {
    PaceFile file(rank, ranks);
    file.communicator(1, static_cast<std::uint32_t>(ranks), 42, static_cast<std::uint32_t>(rank), "MPI_COMM_WORLD");
    file.communicator(2, static_cast<std::uint32_t>(ranks), 0xabc, static_cast<std::uint32_t>(rank), "");
    return file;
  }

  void save(const PaceFile& file) const {
    format::HeaderFacts facts;
    facts.file_id = file.file.header.pid;
    facts.pid = file.file.header.pid;
    facts.ticks_per_second = file.file.header.ticks_per_second;
    facts.start_ticks = file.file.header.start_ticks;
    facts.start_utc_ns = file.file.header.start_utc_ns;
    facts.rank = file.file.header.rank;
    facts.world_size = file.file.header.world_size;
    facts.host = facts.boot_id = "node";
    facts.job = "7";
    format::write_trace_file(directory_ / "run" / file.file.path, facts, file.file.tracks);
  }

  json whole_report() const {
    const Outcome outcome = paceline("report --format json run");
    EXPECT_EQ(outcome.status, 0) << outcome.errors;
    return json::parse(outcome.output);
  }
  json report() const { return whole_report()["runs"][0]; }

  // Three ranks, of which `enter` adds the calls of a collective that rank 2 never enters, at 10 s; the job ends at 60
  // s.
  std::string hang(void (*enter)(PaceFile&, bool comes)) const {
    for (int rank = 0; rank < 3; ++rank) {
      PaceFile file = member(rank, 3);
      enter(file, rank != 2);
      file.use_thread(file.file.header.pid);
      file.clock_pair(60 * second, 0, 60 * second, 1);
      save(file);
    }
    const json whole = whole_report();
    const json place = {{"rank", 2}, {"start_ns", 10 * second}, {"end_ns", 60 * second}};
    int hangs = 0;
    for (const json& finding : whole["findings"]) {
      if (finding.value("kind", "") != "hang") continue;
      ++hangs;
      EXPECT_EQ(finding.value("places", json()), json::array({place})) << "where the rank is that is missing";
    }
    EXPECT_EQ(hangs, 1);
    const json run = whole["runs"][0];
    EXPECT_EQ(run["hangs"].size(), 1U) << run["hangs"];
    return run["hangs"].empty() ? "" : run["hangs"][0].get<std::string>();
  }
};

TEST_F(GoldenReport, NamesTheRankThatNeverReachedABlockingCollective) {
  EXPECT_EQ(
      hang([](PaceFile& file, bool comes) {
        file.mpi_collective(1 * second, MpiId::Barrier, -1, 0, 1, 0);
        file.mpi_end(1 * second + 10, MpiId::Barrier);
        if (comes) file.mpi_collective(10 * second, MpiId::Allreduce, -1, 8, 1, 1);
      }),
      "Rank 2 never entered MPI_Allreduce #2 on MPI_COMM_WORLD; ranks 0 and 1 have waited in it since 10.000 s, for "
      "50.000 s.");
}

struct Wait {
  std::uint64_t request = 0;
  bool ends = true;
};

// A collective of 8 bytes that `call` posts at `at`, and the wait for its request a second later.
void post_and_wait(PaceFile& file, std::uint64_t at, MpiId call, std::uint32_t sequence, const Wait& wait) {
  file.mpi_collective(at, call, -1, 8, 1, sequence);
  file.add(at + 10, EventType::mpi_posted, wait.request);
  file.mpi_end(at + 20, call);
  file.mpi_begin(at + second, MpiId::Wait);
  file.add(at + second + 10, EventType::mpi_completed, wait.request);
  if (wait.ends) file.mpi_end(at + second + 20, MpiId::Wait);
}

TEST_F(GoldenReport, NamesTheRankThatNeverReachedANonBlockingCollective) {
  EXPECT_EQ(
      hang([](PaceFile& file, bool comes) {
        for (std::uint32_t call = 0; call < (comes ? 2U : 1U); ++call) {
          const std::uint64_t at = (call == 0 ? 1 : 9) * second;
          post_and_wait(file, at, MpiId::Iallreduce, call, {.request = call + 1, .ends = call == 0});
        }
      }),
      "Rank 2 never entered MPI_Iallreduce #2 on MPI_COMM_WORLD; ranks 0 and 1 have waited in it since 10.000 s, for "
      "50.000 s.");
}

TEST_F(GoldenReport, NamesTheRankThatNeverStartedAPersistentCollectiveAgain) {
  EXPECT_EQ(
      hang([](PaceFile& file, bool comes) {
        file.mpi_collective(1 * second, MpiId::Allreduce_init, -1, 8, 1, 0);
        file.mpi_end(1 * second + 20, MpiId::Allreduce_init);
        for (std::uint64_t round = 0; round < (comes ? 2U : 1U); ++round) {
          const std::uint64_t at = (round == 0 ? 2 : 9) * second;
          post_and_wait(file, at, MpiId::Start, 0, {.request = round + 1, .ends = round == 0});
        }
      }),
      "Rank 2 never entered start 2 of MPI_Allreduce_init #1 on MPI_COMM_WORLD; ranks 0 and 1 have waited in it since "
      "10.000 s, for 50.000 s.");
}

// NCCL's plugin reports the enqueueing. The kernel that hangs never ends, so nothing reports that it ran.
TEST_F(GoldenReport, NamesTheRankThatNeverEnqueuedACollectiveOfNccl) {
  EXPECT_EQ(
      hang([](PaceFile& file, bool comes) {
        const std::uint64_t operation = file.name("AllReduce ncclFloat32 RING SIMPLE 2 16");
        for (std::uint64_t call = 0; call < (comes ? 2U : 1U); ++call) {
          const std::uint64_t at = (call == 0 ? 1 : 10) * second;
          file.add(at, EventType::nccl_collective, operation | 2ULL << 32);
          file.extension(4000, call);
          file.extension(call + 1, 0);
          file.add(at + 1000, EventType::nccl_end, call + 1);
        }
      }),
      "Rank 2 never entered ncclAllReduce #2 on 0000000000000abc; ranks 0 and 1 have waited in it since 10.000 s, for "
      "50.000 s.");
}

std::uint64_t pair(std::uint64_t low, std::uint64_t high) { return low | high << 32; }

// Defines kernel `number`, with a grid and blocks of any size.
void define_kernel(PaceFile& file, std::uint64_t number, std::string_view name) {
  file.add(0, EventType::cuda_kernel, pair(number, file.name(name)));
  file.extension(64 | 1ULL << 32 | 1ULL << 48, 128 | 1ULL << 16 | 1ULL << 32 | 40ULL << 48);
  file.extension(pair(16, 32), 0);
}

void define_stream(PaceFile& file, std::uint64_t number) {
  file.add(0, EventType::cuda_stream, pair(number, 0));
  file.extension(pair(0, 1), 6 + number);
}

void run_kernel(PaceFile& file, std::uint64_t at, std::uint64_t length, std::uint64_t kernel, std::uint64_t stream,
                std::uint64_t correlation) {
  file.add(at, EventType::cuda_kernel_run, pair(kernel, stream));
  file.extension(length, pair(correlation, 0));
}

// In µs, on two streams: computation from 0 to 300 and from 500 to 700, a kernel of NCCL from 200 to 400. Nothing runs
// from 400 to 500, and 100 of the 200 of communication are hidden.
TEST_F(GoldenReport, HasTheTimesOfAGpu) {
  PaceFile file = member(0, 1);
  define_kernel(file, 1, "_Z6squarePfi");
  define_kernel(file, 2, "ncclDevKernel_AllReduce_Sum_f32_RING_LL");
  define_stream(file, 1);
  define_stream(file, 2);
  file.use_thread(999);  // CUPTI's
  run_kernel(file, 1'000'000, 300'000, 1, 1, 1);
  run_kernel(file, 1'200'000, 200'000, 2, 2, 2);
  run_kernel(file, 1'500'000, 200'000, 1, 1, 3);
  save(file);
  const json rank = report()["per_rank"][0], &gpu = rank["gpu"];
  EXPECT_EQ(gpu["span_ns"], 700'000);
  EXPECT_EQ(gpu["idle_ns"], 100'000);
  EXPECT_EQ(gpu["compute_ns"], 500'000);
  EXPECT_EQ(gpu["noncompute_ns"], 100'000);
  EXPECT_EQ(rank["overlap"], json({{"communication_ns", 200'000}, {"hidden_ns", 100'000}}));
}

// Four ranks enter each collective of 4 MB one millisecond after another, and all leave it 8 ms after the last one: 500
// MB/s. Each rank sends 3/4 of the bytes over its link, and an allreduce twice as much.
TEST_F(GoldenReport, HasTheBandwidthsOfCollectives) {
  constexpr std::uint64_t millisecond = 1'000'000;
  struct Function {
    const char* name;
    MpiId id;
    double busbw;
  };
  const Function functions[] = {{"MPI_Allreduce", MpiId::Allreduce, 750e6},
                                {"MPI_Allgather", MpiId::Allgather, 375e6},
                                {"MPI_Reduce_scatter", MpiId::Reduce_scatter, 375e6},
                                {"MPI_Alltoall", MpiId::Alltoall, 375e6},
                                {"MPI_Bcast", MpiId::Bcast, 500e6},
                                {"MPI_Reduce", MpiId::Reduce, 500e6}};
  for (int rank = 0; rank < 4; ++rank) {
    PaceFile file = member(rank, 4);
    std::uint32_t sequence = 0;
    for (const Function& function : functions) {
      const std::uint64_t begin = (1 + sequence) * 20 * millisecond;
      file.mpi_collective(begin + static_cast<std::uint64_t>(rank) * millisecond, function.id, 0, 4'000'000, 1,
                          sequence++);
      file.mpi_end(begin + 11 * millisecond, function.id);
    }
    file.clock_pair(second, 0, second, 1);
    save(file);
  }
  const json collectives = report()["collectives"];
  ASSERT_EQ(collectives.size(), std::size(functions)) << collectives;
  for (const auto& [name, id, busbw] : functions) {
    const auto row = std::ranges::find_if(collectives, [&](const json& of) { return of["operation"] == name; });
    ASSERT_NE(row, collectives.end()) << name;
    EXPECT_EQ((*row)["wait_ns"], 6 * millisecond) << name;
    EXPECT_EQ((*row)["transfer_ns"], 8 * millisecond) << name;
    EXPECT_NEAR((*row)["algbw_bytes_per_s"].get<double>(), 500e6, 1) << name;
    EXPECT_NEAR((*row)["busbw_bytes_per_s"].get<double>(), busbw, 1) << name;
  }
}

// Rank 0 computes for 3 ms and launches two kernels meanwhile, one of them inside the layer.
TEST_F(GoldenReport, ProjectsKernelsOntoRanges) {
  PaceFile file = member(0, 1);
  file.add(0, EventType::cuda_function, 1 | std::uint64_t{file.name("cudaLaunchKernel")} << 32);
  define_kernel(file, 1, "_Z6squarePfi");
  define_stream(file, 1);
  const std::uint32_t forward = file.name("forward"), layer = file.name("<b>layer</b>");
  file.push(1'000'000, format::pack_scope(forward, 0, 0));
  file.push(2'000'000, format::pack_scope(layer, 0, 0));
  file.pop(3'000'000);
  file.pop(4'000'000);
  const std::uint64_t main = file.file.header.pid;
  file.use_thread(999);  // CUPTI's
  const auto launch = [&](std::uint64_t at, std::uint64_t correlation, std::uint64_t begin, std::uint64_t length) {
    file.add(at, EventType::cuda_call, 1 | main << 32);
    file.extension(5000, correlation);
    run_kernel(file, begin, length, 1, 1, correlation);
  };
  launch(1'500'000, 1, 5'000'000, 300'000);
  launch(2'500'000, 2, 6'000'000, 200'000);
  save(file);
  const json ranges = report()["per_rank"][0]["ranges"];
  const auto device = [&](const std::string& name) {
    for (const json& range : ranges) {
      if (range["name"] == name) return std::vector<std::int64_t>{range["device_ns"], range["projected_ns"]};
    }
    return std::vector<std::int64_t>{};
  };
  EXPECT_EQ(device("forward"), (std::vector<std::int64_t>{500'000, 1'200'000}));
  EXPECT_EQ(device("<b>layer</b>"), (std::vector<std::int64_t>{200'000, 200'000}));
  EXPECT_EQ(device("cudaLaunchKernel"), (std::vector<std::int64_t>{500'000, 500'000}));
  const std::string html = paceline("report --format html run").output;
  EXPECT_EQ(html.find("<b>layer</b>"), std::string::npos);
  EXPECT_THAT(html, HasSubstr("&lt;b&gt;layer&lt;/b&gt;"));
}

// Rank 0 sends 1 kB when rank 1 has waited for 20 µs, and 3 kB for which rank 1 comes 50 µs late.
TEST_F(GoldenReport, HasTheMatrixOfMessages) {
  for (int rank = 0; rank < 2; ++rank) {
    PaceFile file = member(rank, 2);
    const MpiId function = rank == 0 ? MpiId::Ssend : MpiId::Recv;
    const auto message = [&](std::uint64_t begin, std::uint64_t end, std::uint64_t bytes) {
      file.mpi_peer(begin, function, 5, bytes, 1, 1 - rank);
      file.mpi_end(end, function);
    };
    message(rank == 0 ? 120'000 : 100'000, 130'000, 1000);
    message(rank == 0 ? 200'000 : 250'000, 260'000, 3000);
    file.clock_pair(second, 0, second, 1);
    save(file);
  }
  const json messages = report()["messages"];
  EXPECT_EQ(messages["pairs"], json({{{"sender", 0},
                                      {"receiver", 1},
                                      {"messages", 2},
                                      {"matched", 2},
                                      {"bytes", 4000},
                                      {"late_sender_ns", 20'000},
                                      {"late_receiver_ns", 50'000}}}));
  EXPECT_EQ(paceline("report --format csv -o tables/ run").status, 0);
  EXPECT_EQ(
      text_of(directory_ / "tables/report-messages.csv"),
      "run,sender,receiver,messages,matched,bytes,late_sender_ns,late_receiver_ns\nrun,0,1,2,2,4000,20000,50000\n");
  EXPECT_THAT(text_of(directory_ / "tables/report-ranges.csv"),
              HasSubstr("run,0,mpi,point-to-point,MPI_Ssend,2,70000,10000,35000,60000,"));
}

// Four ranks in a ring, 60 iterations of 100 ms: the even ranks send 1 MB, then the odd ones. A message takes 10 ms,
// from 1 to 2 it takes 20; 9 and 11 in changing order from 0 to 1 and from 2 to 3. So the median of the others is
// always 10.
TEST_F(GoldenReport, NamesTheSlowLinkOfARing) {
  constexpr std::uint64_t millisecond = 1'000'000;
  for (int rank = 0; rank < 4; ++rank) {
    PaceFile file = member(rank, 4);
    const std::uint64_t iteration = format::pack_scope(file.name("iteration"), 0, 0);
    std::mt19937 random(5);  // the same numbers on each rank
    for (std::uint64_t i = 0; i < 60; ++i) {
      const std::uint64_t begin = (1 + i) * 100 * millisecond, sign = random() % 2;
      const std::uint64_t lengths[] = {9 + 2 * sign, 20, 11 - 2 * sign, 10};  // ms, by the sender
      file.push(begin, iteration);
      for (const int turn : {0, 1}) {
        const std::uint64_t at = begin + static_cast<std::uint64_t>(10 + 40 * turn) * millisecond;
        const bool sends = rank % 2 == turn;
        const int sender = sends ? rank : (rank + 3) % 4;
        file.mpi_peer(at, sends ? MpiId::Ssend : MpiId::Recv, 5, 1'000'000, 1, sends ? (rank + 1) % 4 : sender);
        file.mpi_end(at + lengths[sender] * millisecond, sends ? MpiId::Ssend : MpiId::Recv);
      }
      file.pop(begin + 100 * millisecond);
    }
    save(file);
  }
  const json times = report()["link_times"];
  ASSERT_EQ(times.size(), 1U) << times;
  EXPECT_EQ(times[0]["between_hosts"], false);
  EXPECT_EQ(times[0]["links"], 4);
  ASSERT_EQ(times[0]["slow_links"].size(), 1U) << times;
  const json& slow = times[0]["slow_links"][0];
  EXPECT_EQ(slow["from"], 1);
  EXPECT_EQ(slow["to"], 2);
  EXPECT_NEAR(slow["seconds"].get<double>(), 0.02, 1e-9);
  EXPECT_NEAR(slow["longer_ns"].get<double>(), 10e6, 1);
  EXPECT_NEAR(slow["share_of_step"].get<double>(), 0.1, 1e-9);
}

}  // namespace
}  // namespace paceline::analysis
