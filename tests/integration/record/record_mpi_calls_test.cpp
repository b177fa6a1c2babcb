// SPDX-License-Identifier: Apache-2.0
// Every family of MPI functions, under each MPI library that is installed: bytes, peers, communicators, sequences,
// requests, windows and files, as the programs every_call.c and threads.c have them.
#include <nlohmann/json.hpp>

#include "analysis/communication/collectives.h"
#include "analysis/load/load.h"
#include "tests/integration/record/mpi_calls.h"
#include "tests/integration/record/mpi_libraries.h"
#include "tests/integration/record/run.h"

namespace paceline::test {
namespace {

using format::EventType;

class RecordMpiCalls : public RecordTest, public ::testing::WithParamInterface<MpiLibraryOfTests> {
 protected:
  void SetUp() override {
    if (*GetParam().programs == '\0') GTEST_SKIP() << GetParam().name << " is not installed";
    RecordTest::SetUp();
  }

  std::vector<RecordedFile> record(int ranks, const std::string& program, int recorder_lines = 0) {
    const Ended ended = run(GetParam().launcher + ("-n " + std::to_string(ranks) + " ") + recorded() +
                            GetParam().programs + "/" + program);
    EXPECT_TRUE(ended.by_itself(0)) << ended.err;
    EXPECT_EQ(ended.recorder_lines(), recorder_lines) << ended.err;
    std::vector<RecordedFile> found = files();
    EXPECT_EQ(found.size(), static_cast<std::size_t>(ranks));
    for (const RecordedFile& file : found) {
      EXPECT_EQ(file.file.header.world_size, ranks);
      EXPECT_EQ(file.dropped(), 0u);
      EXPECT_EQ(file.file.header.closed, 1u);
      EXPECT_EQ(requests_of(file, EventType::mpi_posted), requests_of(file, EventType::mpi_completed));
    }
    return found;
  }
};

void expect_collectives_on_world(const Collectives& all, std::uint64_t world, std::uint64_t n) {
  struct Expected {
    std::string function;
    std::uint64_t bytes, more_a_rank = 0;
    int root = -1;
  };
  const std::uint64_t sum = 4 * (n * (n + 1) / 2);  // 1 + 2 + … ints
  const std::vector<Expected> blocking = {{"Barrier", 0},
                                          {"Bcast", 20, 0, 1},
                                          {"Gather", 12 * n, 0, 0},
                                          {"Gather", 12 * n, 0, 0},
                                          {"Gatherv", 4, 4, 0},
                                          {"Scatter", 12 * n, 0, 0},
                                          {"Scatterv", 4, 4, 0},
                                          {"Allgather", 12 * n},
                                          {"Allgather", 12 * n},
                                          {"Allgatherv", sum},
                                          {"Alltoall", 12 * n},
                                          {"Alltoallv", 4 * n},
                                          {"Alltoallw", 4 * n},
                                          {"Allreduce", 28},
                                          {"Allreduce", 28},
                                          {"Reduce", 28, 0, 1},
                                          {"Reduce_scatter", sum},
                                          {"Reduce_scatter_block", 12 * n},
                                          {"Scan", 28},
                                          {"Exscan", 28}};
  std::vector<Expected> expected;
  for (Expected one : blocking) {
    one.function = "MPI_" + one.function;
    expected.push_back(one);
  }
  std::string before;
  for (Expected one : blocking) {
    if (one.function == before) continue;  // in place
    before = one.function;
    one.function[0] = static_cast<char>(one.function[0] - 'A' + 'a');
    one.function = "MPI_I" + one.function;
    expected.push_back(one);
  }
  for (std::uint32_t i = 0; i < expected.size(); ++i) {
    const auto found = all.find({world, i});
    ASSERT_NE(found, all.end()) << i;
    ASSERT_EQ(found->second.size(), n) << i;
    for (const CollectiveCall& call : found->second) {
      EXPECT_EQ(call.function, expected[i].function) << i;
      EXPECT_EQ(call.bytes, expected[i].bytes + expected[i].more_a_rank * static_cast<std::uint64_t>(call.rank)) << i;
      EXPECT_EQ(call.root, expected[i].root) << i;
    }
  }
  EXPECT_EQ(all.count({world, static_cast<std::uint32_t>(expected.size())}), 0u);
}

// MPI 4's forms with large counts are recorded like the others.
void expect_large_counts(const std::vector<RecordedFile>& ranks, const Collectives& all) {
  std::map<std::string, std::uint64_t> bytes;
  for (const auto& [key, calls] : all) {
    if (calls[0].communicator != "large") continue;
    EXPECT_EQ(calls.size(), 3u);
    for (const CollectiveCall& call : calls) bytes[call.function] += call.bytes;
  }
  EXPECT_EQ(bytes, (std::map<std::string, std::uint64_t>{{"MPI_Allreduce", 3 * 52},
                                                         {"MPI_Alltoallv", 3 * 24},
                                                         {"MPI_Allgather", 3 * 36},
                                                         {"MPI_Bcast_init", 3 * 68}}));
  for (const RecordedFile& file : ranks) {
    const RecordedEvent last = file.named(EventType::mpi_begin_peer, "MPI_Sendrecv").back();
    EXPECT_EQ(last.extension[0].high, 36u);
    EXPECT_EQ(second_field(last), 44);
    EXPECT_EQ(upper(last.extension[0].low), (file.file.header.rank + 1) % 3);
  }
}

TEST_P(RecordMpiCalls, CollectivesAreMatchedAcrossRanks) {
  constexpr int n = 3;
  const std::vector<RecordedFile> ranks = record(n, "every_call");
  ASSERT_EQ(ranks.size(), 3u);
  const Collectives all = collectives_of(ranks);
  std::uint64_t world = 0, inter = 0;
  std::map<std::uint64_t, std::set<int>> reduced_on;  // communicator by bytes: rows of made[] in communicators()
  for (const auto& [key, calls] : all) {
    std::set<int> seen;
    for (const CollectiveCall& call : calls) {
      EXPECT_EQ(call.function, calls[0].function) << key.second;
      EXPECT_TRUE(seen.insert(call.rank).second) << call.function << ": twice on one rank";
    }
    if (calls[0].communicator == "MPI_COMM_WORLD") world = key.first;
    if (calls[0].function == "MPI_Allreduce" && calls[0].bytes == 36 && key.second == 0 && calls.size() == 3 &&
        calls[0].size + calls[1].size == 3) {
      inter = key.first;
    }
  }
  ASSERT_NE(world, 0u);
  ASSERT_NE(inter, 0u) << "the two sides of an inter-communicator have two identities";
  for (const auto& [key, calls] : all) {
    // On an inter-communicator the size is that of the own side.
    EXPECT_EQ(calls.size(), key.first == inter ? 3 : calls[0].size) << calls[0].function << " " << key.second;
  }
  expect_collectives_on_world(all, world, n);
  if (GetParam().name != mpi_libraries[0].name) expect_large_counts(ranks, all);  // Open MPI 4 has none

  // The communicators of communicators(), in the order of their creation, identified by the reductions on each.
  std::map<std::uint64_t, std::set<std::uint64_t>> identities;
  std::set<std::uint64_t> different;
  for (const auto& [key, calls] : all) {
    if (calls[0].function != "MPI_Allreduce" || key.second != 0 || key.first == inter || key.first == world) continue;
    identities[calls[0].bytes / 4].insert(key.first);
    EXPECT_TRUE(different.insert(key.first).second);
  }
  EXPECT_EQ(identities[1].size(), 2u);  // even and odd ranks
  for (std::uint64_t one = 2; one <= 9; ++one) EXPECT_EQ(identities[one].size(), 1u) << one;
  EXPECT_EQ(identities[10].size(), 1u);  // merged

  const auto on_inter = [&](std::uint32_t sequence, int rank) {
    for (const CollectiveCall& call : all.at({inter, sequence})) {
      if (call.rank == rank) return call;
    }
    return CollectiveCall{};
  };
  for (int rank = 0; rank < n; ++rank) {
    const int root = rank == 0 ? -3 : rank == 1 ? 0 : -2;
    EXPECT_EQ(on_inter(1, rank).root, root);
    EXPECT_EQ(on_inter(1, rank).bytes, rank == 2 ? 0u : 16u);
    EXPECT_EQ(on_inter(2, rank).bytes, rank == 2 ? 0u : 8u);
  }

  for (const RecordedFile& file : ranks) {
    const auto bytes = [&](const char* function) {
      const auto found = file.named(EventType::mpi_begin_coll, function);
      return found.empty() ? ~std::uint64_t{0} : found[0].extension[0].high;
    };
    for (const std::string prefix : {"MPI_Neighbor_", "MPI_Ineighbor_"}) {
      EXPECT_EQ(bytes((prefix + "allgather").c_str()), 24u) << prefix;
      EXPECT_EQ(bytes((prefix + "alltoall").c_str()), 24u) << prefix;
      for (const char* form : {"allgatherv", "alltoallv", "alltoallw"}) {
        EXPECT_EQ(bytes((prefix + form).c_str()), 16u) << prefix << form;
      }
    }
    EXPECT_EQ(file.named(EventType::mpi_begin_coll, "MPI_Neighbor_alltoall").at(1).extension[0].high, 12u);
    EXPECT_EQ(file.named(EventType::communicator, "twin").size(), 1u);
    // Persistent collectives: each start has the arguments of its initialisation.
    const auto starts = file.named(EventType::mpi_begin_coll, "MPI_Start");
    ASSERT_EQ(starts.size(), 6u);  // two of them in a Startall
    for (std::uint32_t i = 0; i < 6; ++i) {
      EXPECT_EQ(starts[i].extension[0].high, i % 2 ? 20u : 28u);
      EXPECT_EQ(upper(starts[i].extension[0].low), static_cast<int>(i % 2));
      EXPECT_EQ(second_field(starts[i]), i % 2 ? 1 : -1);
    }
    EXPECT_EQ(bytes("MPI_Allreduce_init"), 28u);
  }
}

// The table of collectives also has the nonblocking ones.
TEST_P(RecordMpiCalls, NonblockingCollectivesEndWithTheirRequests) {
  record(3, "every_call");
  const analysis::Trace trace = analysis::load_run(directory / "run");
  const analysis::Collectives collectives = analysis::match_collectives(trace);
  EXPECT_EQ(collectives.unmatched_calls, 0u);
  std::map<std::string, std::pair<std::uint64_t, std::uint64_t>> rows;  // count and timed ones
  for (const auto& row : collectives.rows) {
    auto& [count, timed] = rows[row.operation];
    count += row.count;
    timed += row.timed;
  }
  using Counts = std::pair<std::uint64_t, std::uint64_t>;
  int returning_early = 0;
  for (const auto& [name, counts] : rows) {
    if (name.find("eighbor_") != std::string::npos) {
      EXPECT_EQ(counts, Counts(name == "MPI_Neighbor_alltoall" ? 2 : 1, 0)) << name;
    } else if (name.starts_with("MPI_I")) {
      EXPECT_EQ(counts, Counts(1, 1)) << name;
      ++returning_early;
    } else {
      EXPECT_EQ(counts.first, counts.second) << name;
    }
  }
  EXPECT_EQ(returning_early, 17);
  EXPECT_EQ(rows["MPI_Allreduce_init"], Counts(3, 3));  // two starts alone, one of a Startall
  EXPECT_EQ(rows["MPI_Bcast_init"], Counts(3, 3));
  EXPECT_EQ(rows.count("MPI_Start"), 0u);
  EXPECT_EQ(rows.size(), 17u + 17 + 10 + 2);
  for (const auto& collective : collectives.matched) {
    const std::string& name = collectives.operations[collective.operation];
    for (const auto& call : collective.calls) {
      EXPECT_LE(call.start_ns, call.blocked_from_ns) << name;
      EXPECT_LE(call.blocked_from_ns, call.end_ns) << name;
      if (name == "MPI_Ibarrier") {
        EXPECT_GE(call.end_ns, collective.last_start_ns - 1000) << "nobody leaves a barrier before the last has come";
      }
    }
  }
}

TEST_P(RecordMpiCalls, MessagesWindowsAndFilesHaveTheirBytes) {
  constexpr int n = 3;
  const std::vector<RecordedFile> ranks = record(n, "every_call " + (directory / "every_call.bin").string());
  ASSERT_EQ(ranks.size(), 3u);
  std::set<std::uint64_t> windows, opened;
  for (int rank = 0; rank < n; ++rank) {
    const RecordedFile& file = ranks[rank];
    const auto first_message = [&](const char* function) {
      return file.named(EventType::mpi_begin_peer, function).at(0);
    };
    if (rank < 2) {
      const RecordedEvent message = first_message(rank == 0 ? "MPI_Send" : "MPI_Recv");
      EXPECT_EQ(message.extension[0].high, 44u);
      EXPECT_EQ(upper(message.extension[0].low), rank == 0 ? 1 : -1);
      EXPECT_EQ(second_field(message), rank == 0 ? 7 : -1);
      EXPECT_EQ(first_message("MPI_Sendrecv").extension[0].high, 12u);
      const auto starts = file.named(EventType::mpi_begin_peer, "MPI_Start");
      ASSERT_EQ(starts.size(), 4u);  // two of them in a Startall
      for (const RecordedEvent& start : starts) {
        EXPECT_EQ(start.extension[0].high, 24u);
        EXPECT_EQ(second_field(start), 31);
        EXPECT_EQ(upper(start.extension[0].low), 1 - rank);
      }
      if (rank == 1) {
        EXPECT_EQ(first_message("MPI_Mrecv").extension[0].high, 8u);
      }
      // 2 of the waitall, 6 × 4 in the other ways, 4 persistent ones, and the Rput's and iwrite's besides the
      // collectives.
      EXPECT_EQ(requests_of(file, EventType::mpi_posted).size(), 2u + 24 + 4 + 2 + 17 + 5 + 6 + 2);
    } else {
      const RecordedEvent to_nobody = first_message("MPI_Send");
      EXPECT_EQ(upper(to_nobody.extension[0].low), -2);
      EXPECT_EQ(to_nobody.extension[0].high, 0u);
    }

    const auto made = file.of(EventType::mpi_window);
    ASSERT_EQ(made.size(), 1u);
    EXPECT_EQ(made[0].extension[0].low, 256u);
    windows.insert(made[0].extension[0].high);
    const auto access = [&](const char* function, std::uint64_t bytes) {
      const auto found = file.named(EventType::mpi_begin_window, function);
      ASSERT_EQ(found.size(), 1u) << function;
      EXPECT_EQ(found[0].extension[0].high, bytes) << function;
      EXPECT_EQ(second_field(found[0]), (rank + 1) % n) << function;
      EXPECT_EQ(lower(found[0].extension[0].low), lower(made[0].head.low)) << function;
    };
    access("MPI_Put", 16);
    access("MPI_Get", 20);
    access("MPI_Accumulate", 24);
    access("MPI_Fetch_and_op", 4);
    access("MPI_Rput", 8);
    access("MPI_Win_lock", 0);
    EXPECT_EQ(second_field(file.named(EventType::mpi_begin_window, "MPI_Win_fence").at(0)), -1);

    const auto paths = file.of(EventType::mpi_file);
    ASSERT_EQ(paths.size(), 1u);
    EXPECT_EQ(paths[0].name, (directory / "every_call.bin").string());
    opened.insert(paths[0].extension[0].high);
    const auto transfer = [&](const char* function, std::uint64_t bytes, std::int64_t offset) {
      const auto found = file.named(EventType::mpi_begin_file, function);
      ASSERT_EQ(found.size(), 1u) << function;
      EXPECT_EQ(found[0].extension[0].high, bytes) << function;
      EXPECT_EQ(static_cast<std::int64_t>(found[0].extension[0].low), offset) << function;
      EXPECT_EQ(static_cast<std::uint32_t>(second_field(found[0])), lower(paths[0].head.low)) << function;
    };
    transfer("MPI_File_write_at_all", 32, 64 * rank);
    transfer("MPI_File_read_at", 16, 64 * rank);
    transfer("MPI_File_iwrite_at", 8, 64 * rank);
    transfer("MPI_File_read", 12, -1);
    transfer("MPI_File_read_all_begin", 4, -1);
    transfer("MPI_File_get_view", 0, -1);
    transfer("MPI_File_set_atomicity", 0, -1);
    transfer("MPI_File_close", 0, -1);
  }
  EXPECT_EQ(windows.size(), 1u);
  EXPECT_EQ(opened.size(), 1u);
}

TEST_P(RecordMpiCalls, ThreadsCallAtOnce) {
  const std::vector<RecordedFile> ranks = record(2, "threads");
  ASSERT_EQ(ranks.size(), 2u);
  if (ranks[0].of(EventType::mpi_begin_coll).empty()) GTEST_SKIP() << "this MPI library has no MPI_THREAD_MULTIPLE";
  const Collectives all = collectives_of(ranks);
  EXPECT_EQ(all.size(), 4u * 200);
  for (const auto& [key, calls] : all) EXPECT_EQ(calls.size(), 2u);
  for (const RecordedFile& file : ranks) {
    EXPECT_EQ(requests_of(file, EventType::mpi_posted).size(), 4u * 200 * 2);
    std::set<std::uint32_t> tracks;
    for (const RecordedEvent& event : file.of(EventType::mpi_begin_coll)) tracks.insert(event.track);
    EXPECT_EQ(tracks.size(), 4u);
  }
}

// Through mpi_f08 (mpi_x_f08_ of Open MPI) and mpif.h (mpi_x_). MPICH's Fortran functions call those of C.
TEST_P(RecordMpiCalls, FortranIsRecordedOnceForEachCall) {
  for (const std::string program : {"collectives", "collectives_mpif"}) {
    SCOPED_TRACE(program);
    if (!std::filesystem::exists(GetParam().programs + ("/" + program))) GTEST_SKIP() << "no Fortran compiler";
    std::filesystem::remove_all(directory / "run");
    const std::vector<RecordedFile> ranks = record(2, program);
    ASSERT_EQ(ranks.size(), 2u);
    for (const RecordedFile& file : ranks) {
      const auto reductions = file.named(EventType::mpi_begin_coll, "MPI_Allreduce");
      ASSERT_EQ(reductions.size(), 2u);
      for (const RecordedEvent& reduction : reductions) EXPECT_EQ(reduction.extension[0].high, 16u);
      EXPECT_NE(lower(reductions[0].extension[0].low), lower(reductions[1].extension[0].low));
      // One is between Pcontrol(0) and Pcontrol(1).
      EXPECT_EQ(file.named(EventType::mpi_begin_coll, "MPI_Barrier").size(), 1u);
      for (const char* once : {"MPI_Init", "MPI_Comm_split", "MPI_Comm_free", "MPI_Finalize"}) {
        EXPECT_EQ(file.named(EventType::mpi_begin, once).size(), 1u) << once;
      }
      const int rank = file.file.header.rank;
      const auto messages = file.of(EventType::mpi_begin_peer);
      ASSERT_EQ(messages.size(), 2u);
      for (const RecordedEvent& message : messages) {
        EXPECT_EQ(message.extension[0].high, 12u);
        EXPECT_EQ(upper(message.extension[0].low), 1 - rank);
        EXPECT_EQ(second_field(message), 5);
      }
      EXPECT_EQ(requests_of(file, EventType::mpi_posted).size(), 3u);
      EXPECT_EQ(file.named(EventType::mpi_file, "sums.bin").size(), 1u);
      const auto written = file.named(EventType::mpi_begin_file, "MPI_File_write_at_all");
      ASSERT_EQ(written.size(), 1u);
      EXPECT_EQ(written[0].extension[0].high, 16u);
      EXPECT_EQ(written[0].extension[0].low, 16u * static_cast<unsigned>(rank));
    }
    const Collectives all = collectives_of(ranks);
    EXPECT_EQ(all.size(), 3u);
    for (const auto& [key, calls] : all) EXPECT_EQ(calls.size(), 2u) << calls[0].function;
  }
}

TEST_P(RecordMpiCalls, SessionsRecordTheTimesOfCalls) {
  const Ended ended = run(GetParam().launcher + ("-n 2 " + recorded()) + GetParam().programs + "/sessions");
  EXPECT_TRUE(ended.by_itself(0)) << ended.err;
  if (ended.out.empty()) {
    EXPECT_STREQ(GetParam().name, "OpenMpi");
    GTEST_SKIP() << "this MPI library is older than MPI 4";
  }
  EXPECT_NE(ended.out.find("rank 1: 2\n"), std::string::npos) << ended.out;
  EXPECT_EQ(ended.recorder_lines(), 1) << ended.err;
  EXPECT_NE(ended.err.find("with sessions only"), std::string::npos) << ended.err;
  const std::vector<RecordedFile> ranks = files();
  ASSERT_EQ(ranks.size(), 2u);
  for (const RecordedFile& file : ranks) {
    EXPECT_EQ(file.file.header.closed, 1u);
    EXPECT_EQ(file.named(EventType::mpi_begin, "MPI_Session_init").size(), 1u);
    EXPECT_EQ(file.named(EventType::mpi_begin, "MPI_Comm_create_from_group").size(), 1u);
    EXPECT_EQ(file.named(EventType::mpi_begin, "MPI_Allreduce").size(), 5u);
    EXPECT_EQ(file.named(EventType::mpi_end, "MPI_Allreduce").size(), 5u);
  }
}

// The calls of a training loop: gradients of layers by MPI_Iallreduce, a metric, a barrier.
TEST_P(RecordMpiCalls, ACollectiveTakesAtMostFortyBytesOnDisk) {
  const std::vector<RecordedFile> ranks = record(2, "gradients");
  ASSERT_EQ(ranks.size(), 2u);
  for (const RecordedFile& file : ranks) {
    const std::size_t collectives = file.of(EventType::mpi_begin_coll).size();
    EXPECT_EQ(collectives, 200u * 27);
    const double each =
        static_cast<double>(std::filesystem::file_size(file.file.path)) / static_cast<double>(collectives);
    EXPECT_LE(each, 40) << "the whole file, its waits and the header included";
    RecordProperty("bytes_each", std::to_string(each));
    std::printf("%s: %.1f bytes a collective\n", GetParam().name, each);
  }
}

#ifdef PACELINE
// A batch script with two mpirun, recorded as one job.
TEST_P(RecordMpiCalls, TwoRunsOfMpirunInOneJobAreTwoRuns) {
  const std::string mpirun = GetParam().launcher + std::string("-n 2 "),
                    program = GetParam().programs + std::string("/tool_program");
  const Ended ended = run(PACELINE " record -o run -- sh -c \"" + mpirun + program + "; " + mpirun + "sh -c \\\"" +
                          program + " second; true\\\"\"");
  EXPECT_TRUE(ended.by_itself(0)) << ended.err;
  ASSERT_EQ(files().size(), 4u);
  const auto info = nlohmann::json::parse(run(PACELINE " info --format json run").out);
  ASSERT_EQ(info["traces"].size(), 2u) << info["traces"];
  for (const auto& trace : info["traces"]) {
    EXPECT_NE(trace["command"].dump().find("second"), std::string::npos) << trace["command"];
  }
  ASSERT_EQ(info["notes"].size(), 1u);
  EXPECT_NE(info["notes"].dump().find("and 1 other file left out: an earlier mpirun"), std::string::npos)
      << info["notes"];
}
#endif

INSTANTIATE_TEST_SUITE_P(Libraries, RecordMpiCalls, ::testing::ValuesIn(mpi_libraries),
                         [](const auto& library) { return std::string(library.param.name); });

class RecordOtherMpi : public RecordTest {};

// Two worlds that connect have communicators whose members have no rank in this MPI_COMM_WORLD.
TEST_F(RecordOtherMpi, AProgramThatSpawnsAnotherIsUnharmed) {
  const Ended ended = run(MPIRUN " --bind-to none -n 1 " + recorded() + OPEN_MPI_PROGRAMS "/join_worlds");
  EXPECT_TRUE(ended.by_itself(0)) << ended.err;
  EXPECT_NE(ended.out.find("parent 2\n"), std::string::npos) << ended.out;
  EXPECT_NE(ended.out.find("child 2\n"), std::string::npos) << ended.out;
  const std::vector<RecordedFile> ranks = files();
  ASSERT_GE(ranks.size(), 1u);
  EXPECT_EQ(ranks[0].named(EventType::mpi_begin, "MPI_Comm_spawn").size(), 1u);
  EXPECT_EQ(ranks[0].named(EventType::mpi_begin_coll, "MPI_Allreduce").size(), 2u);
}

TEST_F(RecordOtherMpi, RanksThatJoinThroughAPortAreUnharmed) {
  const Ended ended = run(MPIRUN " --bind-to none -n 2 " + recorded() + OPEN_MPI_PROGRAMS "/join_worlds");
  EXPECT_TRUE(ended.by_itself(0)) << ended.err;
  EXPECT_EQ(ended.out, "parent 2\nparent 2\n");
  const std::vector<RecordedFile> ranks = files();
  ASSERT_EQ(ranks.size(), 2u);
  EXPECT_EQ(ranks[0].named(EventType::mpi_begin, "MPI_Comm_accept").size(), 1u);
  EXPECT_EQ(ranks[1].named(EventType::mpi_begin, "MPI_Comm_connect").size(), 1u);
  // Here both sides belong to one MPI_COMM_WORLD, so their identities agree.
  for (const auto& [key, calls] : collectives_of(ranks)) EXPECT_EQ(calls.size(), 2u);
}

// Calls of an unknown library pass through: their times are recorded, and one line reports it.
TEST_F(RecordOtherMpi, AnUnknownLibraryIsPassedThrough) {
  const Ended ended = run(recorded() + UNKNOWN_MPI_PROGRAM);
  EXPECT_TRUE(ended.by_itself(0)) << ended.err;
  EXPECT_EQ(ended.recorder_lines(), 1) << ended.err;
  EXPECT_NE(ended.err.find("Nobody's MPI 1.0"), std::string::npos) << ended.err;
  const std::vector<RecordedFile> ranks = files();
  ASSERT_EQ(ranks.size(), 1u);
  EXPECT_EQ(ranks[0].named(EventType::mpi_begin, "MPI_Allreduce").size(), 3u);
  EXPECT_EQ(ranks[0].named(EventType::mpi_end, "MPI_Allreduce").size(), 3u);
  EXPECT_TRUE(ranks[0].of(EventType::mpi_begin_coll).empty());
}

TEST_F(RecordOtherMpi, AStaticallyLinkedLibraryIsReportedAsInvisible) {
  for (const char* rank : {"", "OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2"}) {
    const Ended ended = run(recorded(rank) + STATIC_MPI_PROGRAM);
    EXPECT_TRUE(ended.by_itself(0)) << ended.err;
    EXPECT_EQ(ended.err, "paceline: MPI is linked statically into " STATIC_MPI_PROGRAM
                         ": its calls are not recorded; link MPI\'s shared library\n");
    const RecordedFile file = only_file();
    EXPECT_EQ(file.of(EventType::push).size(), 3u);
    EXPECT_TRUE(file.of(EventType::mpi_begin).empty());
    std::filesystem::remove_all(directory / "run");
  }
  const Ended second = run(recorded("OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2") + STATIC_MPI_PROGRAM);
  EXPECT_EQ(second.err, "") << "once in a job";
}

// Without a table of its symbols the program hides what it has. The line comes at its end.
TEST_F(RecordOtherMpi, AStaticallyLinkedLibraryOfAStrippedProgramIsReportedAsInvisible) {
  ASSERT_TRUE(run("strip -o stripped " STATIC_MPI_PROGRAM).by_itself(0));
  const Ended ended = run(recorded("OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2") + "./stripped");
  EXPECT_TRUE(ended.by_itself(0)) << ended.err;
  EXPECT_EQ(ended.recorder_lines(), 1) << ended.err;
  EXPECT_NE(ended.err.find("links MPI statically"), std::string::npos) << ended.err;
}

}  // namespace
}  // namespace paceline::test
