// SPDX-License-Identifier: Apache-2.0
// Python programs, which load MPI and NVTX through modules.
#include <algorithm>

#include "tests/integration/record/mpi_calls.h"
#include "tests/integration/record/run.h"

namespace paceline::test {
namespace {

using format::EventType;

class RecordPython : public RecordTest {
 protected:
  // A Python with the module nvtx, which comes from PyPI; the environment is kept between runs. Empty, and `why` says
  // so, where it cannot be made.
  std::string python_with_nvtx(std::string& why) {
    const std::string python = VENV "/bin/python";
    if (run(python + " -c \"import nvtx\"").by_itself(0)) return python;
    const Ended made = run("/usr/bin/python3 -m venv " VENV " && " + python +
                           " -m pip install --quiet --disable-pip-version-check --retries 0 --timeout 10 nvtx");
    why = made.err;
    return made.by_itself(0) ? python : "";
  }
  // Eight bytes for each range, besides the header, names, counters and clocks of a process.
  static void expect_small(const RecordedFile& file) {
    const std::size_t ranges = file.of(EventType::push).size() + file.of(EventType::push_payload).size();
    EXPECT_LE(std::filesystem::file_size(file.file.path), 16'384 + 8 * ranges);
  }
};

TEST_F(RecordPython, AScriptWithMpi4pyIsRecorded) {
  if (!run("/usr/bin/python3 -c \"import mpi4py\"").by_itself(0)) GTEST_SKIP() << "python3-mpi4py is not installed";
  const Ended ended = run(mpirun() + "-n 2 " + recorded() + "/usr/bin/python3 " SCRIPTS "/mpi_ranks.py");
  EXPECT_TRUE(ended.by_itself(0)) << ended.err;
  const std::vector<RecordedFile> ranks = files();
  ASSERT_EQ(ranks.size(), 2u);
  for (int rank = 0; rank < 2; ++rank) {
    const RecordedFile& file = ranks[rank];
    EXPECT_EQ(file.file.header.rank, rank);
    EXPECT_EQ(file.file.header.closed, 1u);
    const auto reductions = file.named(EventType::mpi_begin_coll, "MPI_Allreduce");
    ASSERT_EQ(reductions.size(), 20u + 1 + 1);
    EXPECT_EQ(reductions[19].extension[0].high, 8000u);
    EXPECT_EQ(file.named(EventType::mpi_begin_coll, "MPI_Barrier").size(), 1u);
    EXPECT_EQ(file.named(EventType::mpi_begin, "MPI_Comm_split").size(), 2u);
    for (const char* posted : {"MPI_Iallreduce", "MPI_Ireduce"}) {
      const auto begun = file.named(EventType::mpi_begin_coll, posted);
      ASSERT_EQ(begun.size(), 1u) << posted;
      EXPECT_EQ(begun[0].extension[0].high, 8000u) << posted;
    }
    EXPECT_GE(requests_of(file, EventType::mpi_posted).size(), 2u);
    EXPECT_EQ(requests_of(file, EventType::mpi_posted), requests_of(file, EventType::mpi_completed));
    const auto written = file.named(EventType::mpi_begin_file, "MPI_File_write_at_all");
    ASSERT_EQ(written.size(), 1u);
    EXPECT_EQ(written[0].extension[0].high, 8000u);
    EXPECT_EQ(written[0].extension[0].low, 8000u * static_cast<std::uint64_t>(rank));
    EXPECT_EQ(file.named(EventType::mpi_file, "gradients.bin").size(), 1u);
    EXPECT_EQ(file.named(EventType::mpi_begin, "MPI_Finalize").size(), 1u);
    EXPECT_EQ(file.named(EventType::mpi_begin_peer, "MPI_Send").size(), rank == 0 ? 1u : 0u);
  }
  for (const auto& [key, calls] : collectives_of(ranks)) {
    EXPECT_EQ(calls.size(), calls[0].size) << calls[0].function;
    for (const CollectiveCall& call : calls) EXPECT_EQ(call.function, calls[0].function);
  }
}

// The calls of mpi4py_calls.py, under the names of MPI 3 or 4.
void expect_the_calls(const RecordedFile& file) {
  const auto bytes_of = [&](EventType type, const char* function) {
    std::vector<std::uint64_t> bytes;
    for (const RecordedEvent& event : file.named(type, function)) bytes.push_back(event.extension[0].high);
    return bytes;
  };
  using Bytes = std::vector<std::uint64_t>;
  EXPECT_EQ(bytes_of(EventType::mpi_begin_coll, "MPI_Allreduce"), Bytes{8000});
  EXPECT_EQ(bytes_of(EventType::mpi_begin_coll, "MPI_Alltoallv"), Bytes{16000});
  EXPECT_EQ(bytes_of(EventType::mpi_begin_coll, "MPI_Iallreduce"), Bytes{8000});
  EXPECT_EQ(bytes_of(EventType::mpi_begin_peer, "MPI_Sendrecv"), Bytes{8000});
  EXPECT_EQ(bytes_of(EventType::mpi_begin_peer, "MPI_Isend"), Bytes{8000});
  EXPECT_EQ(bytes_of(EventType::mpi_begin_window, "MPI_Put"), Bytes{8000});
  EXPECT_EQ(bytes_of(EventType::mpi_begin_file, "MPI_File_write_at_all"), Bytes{8000});
  const Bytes broadcasts = bytes_of(EventType::mpi_begin_coll, "MPI_Bcast");  // two of a pickle, one of an array
  EXPECT_EQ(std::ranges::count(broadcasts, 8000u), 1) << broadcasts.size();
  EXPECT_GE(broadcasts.size(), 3u);
  EXPECT_EQ(bytes_of(EventType::mpi_begin_coll, "MPI_Allgatherv").back(), 16000u);
  const Bytes sent = bytes_of(EventType::mpi_begin_peer, file.file.header.rank == 0 ? "MPI_Send" : "MPI_Recv");
  EXPECT_TRUE(std::ranges::find(sent, 8000u) != sent.end());
  EXPECT_EQ(requests_of(file, EventType::mpi_posted), requests_of(file, EventType::mpi_completed));
}

// PyPI's mpi4py checks with weak references which functions the MPI library has, and calls those of MPI 4 if it finds
// them.
TEST_F(RecordPython, PyPisMpi4pyRunsAsWithoutTheRecorder) {
  const std::string python = VENV "-mpi4py/bin/python";
  const Ended made =
      run("(flock 9; " + python + " -c \"import mpi4py\" || (/usr/bin/python3 -m venv " VENV "-mpi4py && " + python +
          " -m pip install --quiet --disable-pip-version-check --retries 0 --timeout 10"
          " --only-binary=:all: mpi4py)) 9>" VENV "-mpi4py.lock");
  if (!made.by_itself(0)) GTEST_SKIP() << "PyPI's mpi4py cannot be installed here: " << made.err;
  std::vector<std::string> launches = {mpirun() + "-n 2 "};
  if (!std::string(MPICH_PROGRAMS).empty()) {
    // Debian's MPICH is not called libmpi.so.12, the name in the ABI that the MPICH family shares.
    const Ended linked = run("mkdir mpich && ln -s $(ldd " MPICH_PROGRAMS
                             "/gradients | grep libmpich | cut -d\" \" -f3) mpich/libmpi.so.12");
    ASSERT_TRUE(linked.by_itself(0)) << linked.err;
    launches.push_back("env MPI4PY_MPIABI=mpich LD_LIBRARY_PATH=$PWD/mpich " MPICH_MPIRUN " -n 2 ");
  }
  for (const std::string& launch : launches) {
    SCOPED_TRACE(launch);
    std::filesystem::remove_all(directory / "run");
    std::filesystem::remove(directory / "numbers.bin");
    const Ended ended = run(launch + recorded() + python + " " SCRIPTS "/mpi4py_calls.py numbers.bin");
    ASSERT_TRUE(ended.by_itself(0)) << ended.err;
    EXPECT_EQ(ended.recorder_lines(), 0) << ended.err;
    const std::vector<RecordedFile> ranks = files();
    ASSERT_EQ(ranks.size(), 2u);
    for (const RecordedFile& rank : ranks) expect_the_calls(rank);
  }
}

TEST_F(RecordPython, DebiansMpi4pyIsRecordedCallByCall) {
  if (!run("/usr/bin/python3 -c \"import mpi4py\"").by_itself(0)) GTEST_SKIP() << "python3-mpi4py is not installed";
  const Ended ended = run(mpirun() + "-n 2 " + recorded() + "/usr/bin/python3 " SCRIPTS "/mpi4py_calls.py numbers.bin");
  ASSERT_TRUE(ended.by_itself(0)) << ended.err;
  const std::vector<RecordedFile> ranks = files();
  ASSERT_EQ(ranks.size(), 2u);
  for (const RecordedFile& rank : ranks) expect_the_calls(rank);
}

// With weak references and with dlsym, and with references that are bound at the start and later.
TEST_F(RecordPython, AProgramFindsTheMpiFunctionsThatItFindsWithoutTheRecorder) {
  std::vector<std::string> programs = {VISIBLE_ALONE, OPEN_MPI_PROGRAMS "/visible"};
  if (!std::string(MPICH_PROGRAMS).empty()) programs.push_back(MPICH_PROGRAMS "/visible");
  for (const std::string& program : programs) {
    const Ended alone = run(program);
    ASSERT_TRUE(alone.by_itself(0)) << alone.err;
    EXPECT_EQ(run(recorded() + program).out, alone.out) << program;
    EXPECT_EQ(run(recorded("LD_BIND_NOW=1") + program).out, alone.out) << program;
  }
}

TEST_F(RecordPython, ALargeCountWorksWithAnMpiThatHasOnlyIntCounts) {
  const Ended ended = run(mpirun() + "-n 2 " + recorded() + LARGE_CALLS);
  EXPECT_TRUE(ended.by_itself(0)) << ended.err;
  EXPECT_EQ(ended.out, "done\ndone\n");
  for (const RecordedFile& file : files()) {
    for (const RecordedEvent& event : file.named(EventType::mpi_begin_coll, "MPI_Bcast")) {
      EXPECT_EQ(event.extension[0].high, 400u);
    }
  }
}

TEST_F(RecordPython, AScriptWithTheNvtxModuleIsRecorded) {
  std::string why;
  const std::string python = python_with_nvtx(why);
  if (python.empty()) GTEST_SKIP() << "PyPI's nvtx cannot be installed here: " << why;
  const Ended ended = run(recorded() + python + " " SCRIPTS "/nvtx_ranges.py");
  EXPECT_TRUE(ended.by_itself(0)) << ended.err;
  const std::vector<RecordedFile> all = files();
  ASSERT_EQ(all.size(), 1u);
  const RecordedFile& file = all[0];
  EXPECT_EQ(file.file.header.closed, 1u);
  const auto of_any = [&](EventType plain, EventType payload, const char* name) {
    std::vector<RecordedEvent> found = file.named(plain, name);
    for (const RecordedEvent& event : file.named(payload, name)) found.push_back(event);
    return found;
  };
  const auto steps = of_any(EventType::push, EventType::push_payload, "step");
  const auto forward = of_any(EventType::push, EventType::push_payload, "forward");
  EXPECT_EQ(steps.size(), 2000u);
  ASSERT_EQ(forward.size(), 2000u);
  EXPECT_EQ(of_any(EventType::push, EventType::push_payload, "backward").size(), 2000u);
  EXPECT_EQ(file.of(EventType::pop).size(), 6000u);
  expect_small(file);
  EXPECT_EQ(forward[0].domain, "network");
  for (std::uint64_t step = 0; step < 2000; ++step) {
    EXPECT_EQ(forward[step].type, EventType::push_payload);
    EXPECT_EQ(forward[step].extension[0].low, step);
  }
  const auto categories = file.named(EventType::category, "layers");
  ASSERT_EQ(categories.size(), 1u);
  EXPECT_EQ(categories[0].category, forward[0].category);
  EXPECT_EQ(of_any(EventType::mark, EventType::mark_payload, "end").size(), 1u);
  EXPECT_EQ(of_any(EventType::start, EventType::start_payload, "asynchronous").size(), 1u);
  EXPECT_EQ(file.of(EventType::end).size(), 1u);
}

TEST_F(RecordPython, AScriptWithoutRangesIsRecordedCallByCall) {
  std::string why;
  const std::string python = python_with_nvtx(why);
  if (python.empty()) GTEST_SKIP() << "PyPI's nvtx cannot be installed here: " << why;
  const Ended ended = run(recorded() + python + " -m nvtx --no-linenos " SCRIPTS "/without_ranges.py");
  EXPECT_TRUE(ended.by_itself(0)) << ended.err;
  const std::vector<RecordedFile> all = files();
  ASSERT_EQ(all.size(), 1u);
  const RecordedFile& file = all[0];
  const auto calls = [&](const char* name, std::uint64_t thread) {
    std::size_t count = 0;
    for (const RecordedEvent& push : file.named(EventType::push, name)) {
      EXPECT_EQ(push.domain, "nvtx.py");
      if (file.file.tracks.at(push.track).thread_id == thread) ++count;
    }
    return count;
  };
  const std::uint64_t loader = std::stoull(ended.out), main = file.file.header.pid;
  EXPECT_NE(loader, main);
  EXPECT_EQ(calls("leaf", loader), 3u);
  EXPECT_EQ(calls("work", loader), 1u);
  EXPECT_EQ(calls("leaf", main), 3000u);
  EXPECT_EQ(calls("work", main), 1u);
  expect_small(file);
}

}  // namespace
}  // namespace paceline::test
