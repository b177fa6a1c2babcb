// SPDX-License-Identifier: Apache-2.0
// Counters and facts of real programs, compared with the output of the programs and of the system.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <map>
#include <sstream>
#include <thread>

#include "analysis/load/load.h"
#include "analysis/report/build.h"
#include "analysis/run/machine.h"
#include "analysis/statistics/counters.h"
#include "tests/integration/record/run.h"

namespace paceline::test {
namespace {

using analysis::find_counter;
using analysis::Samples;
using ::testing::HasSubstr;

class RecordCounters : public RecordTest {
 protected:
  analysis::Trace load() const { return analysis::load_run(directory / "run"); }
  std::string sysfs() const { return (directory / "sys").string(); }
  void put(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories((directory / "sys" / path).parent_path());
    std::ofstream(directory / "sys" / path) << text;
  }
};

std::string findings_of(const analysis::Trace& trace) {
  std::string text;
  for (const auto& finding : analysis::build_report({analysis::analyse_run(trace, "run")}).findings) {
    text += finding.text + "\n";
  }
  return text;
}

// The largest number of samples, with one in each interval and one at the end.
double most_samples(const Samples& samples, double interval_ms) {
  return 2 + 1e-6 * static_cast<double>(samples.time_ns.back() - samples.time_ns.front()) / interval_ms;
}

// The samples come after the first sampling, and the last one is at the end.
bool has_facts(const std::vector<RecordedFile>& all) { return !all.empty() && all[0].setting("cpus_allowed") != ""; }

double rise(const Samples& samples) { return samples.value.back() - samples.value.front(); }
double highest(const Samples& samples) { return *std::max_element(samples.value.begin(), samples.value.end()); }

TEST_F(RecordCounters, MeasureTheProgramsUse) {
  const Ended ended = run(recorded() + MACHINE " work 600");
  ASSERT_TRUE(ended.by_itself(0)) << ended.err;
  EXPECT_EQ(ended.err, "");
  double cpu_seconds = 0, faults = 0;
  std::istringstream(ended.out) >> cpu_seconds >> faults;
  const analysis::Trace trace = load();
  const analysis::Rank& rank = trace.ranks.at(0);

  std::string counts_storage;
  std::ifstream("/proc/sys/kernel/task_delayacct") >> counts_storage;
  EXPECT_EQ(find_counter(rank, "waiting for storage", "main thread") != nullptr, counts_storage == "1");
  const Samples* cpu = find_counter(rank, "CPU time");
  ASSERT_NE(cpu, nullptr);
  EXPECT_EQ(cpu->unit, "µs");
  // Use before the first sample is missing, and the recorder's own end is included.
  EXPECT_NEAR(rise(*cpu) * 1e-6, cpu_seconds, 0.1 + 0.1 * cpu_seconds);
  // At 20 Hz; a busy machine has fewer.
  EXPECT_GE(cpu->size(), 5u);
  EXPECT_LE(static_cast<double>(cpu->size()), most_samples(*cpu, 50));
  EXPECT_TRUE(std::is_sorted(cpu->time_ns.begin(), cpu->time_ns.end()));

  const Samples* minor = find_counter(rank, "page faults, minor");
  ASSERT_NE(minor, nullptr);
  EXPECT_GE(rise(*minor), (64 << 20) / sysconf(_SC_PAGESIZE) / 512);  // pages may be large ones
  EXPECT_LE(rise(*minor), faults + 1000);
  const Samples* memory = find_counter(rank, "memory, resident");
  ASSERT_NE(memory, nullptr);
  EXPECT_GE(highest(*memory) - memory->value.front(), 60 << 20);
  const Samples* threads = find_counter(rank, "threads");
  ASSERT_NE(threads, nullptr);
  EXPECT_EQ(highest(*threads), 5);  // main, its own, drain, counters, stacks
  const Samples* sent = find_counter(rank, "bytes sent", "lo");
  ASSERT_NE(sent, nullptr);
  EXPECT_GE(rise(*sent), 4 << 20);
  EXPECT_NE(find_counter(rank, "context switches, voluntary"), nullptr);
  EXPECT_NE(find_counter(rank, "context switches, involuntary"), nullptr);

  std::uint64_t samples = 0;
  for (const analysis::Track& track : rank.tracks) {
    // The scheduler's source finds these, and they are no events of counters.
    if (track.samples.name != "CPUs used by another program") samples += track.samples.size();
  }
  EXPECT_EQ(rank.counter_events, samples);
}

TEST_F(RecordCounters, MeasureTheMainThreadsShareOfABusyCpu) {
  if (!std::filesystem::exists("/proc/self/schedstat")) GTEST_SKIP() << "this kernel does not count waiting";
  ASSERT_TRUE(run(mpirun() + "-n 2 " + recorded() + "taskset -c 0 " MACHINE " work 700").by_itself(0));
  const analysis::Trace trace = load();
  ASSERT_EQ(trace.ranks.size(), 2u);
  double running = 0;
  for (const analysis::Rank& rank : trace.ranks) {
    EXPECT_EQ(analysis::fact(rank, "cpus_allowed"), "0");
    const Samples* waiting = find_counter(rank, "waiting for a CPU", "main thread");
    ASSERT_NE(waiting, nullptr);
    EXPECT_GE(rise(*waiting), 100'000) << "µs, of 600 ms of which the other rank has half";
    running += rise(*find_counter(rank, "CPU time", "main thread"));
  }
  EXPECT_LE(running, 900'000) << "one CPU for 700 ms, and a little before and after";
  EXPECT_THAT(findings_of(trace), HasSubstr("Ranks 0 and 1 share CPU 0 of "));
}

TEST_F(RecordCounters, FactsAgreeWithTheSystem) {
  put("class/net/eth7/device/numa_node", "1\n");
  put("class/net/eth7/speed", "25000\n");
  put("class/net/virtual0/speed", "10000\n");
  put("class/infiniband/mlx5_3/ports/1/rate", "200 Gb/sec (4X HDR)\n");
  put("class/infiniband/mlx5_3/ports/1/link_layer", "InfiniBand\n");
  put("class/infiniband/mlx5_3/ports/1/state", "4: ACTIVE\n");
  put("class/infiniband/mlx5_3/ports/1/counters/port_rcv_data", "1000\n");
  put("class/infiniband/mlx5_3/ports/1/counters/port_xmit_data", "2000\n");
  put("class/infiniband/mlx5_3/device/numa_node", "0\n");
  put("devices/system/node/online", "0-1\n");
  put("devices/system/node/node0/cpulist", "0,2-3\n");
  put("devices/system/node/node1/cpulist", "1\n");
  put("devices/system/cpu/online", "0-3\n");
  // Traffic begins later. Until then the port has no counters.
  const std::string port = sysfs() + "/class/infiniband/mlx5_3/ports/1/counters/port_xmit_data";
  Ended ended;
  std::thread job([&] {
    ended = run(
        "ulimit -n 300; " + recorded("PACELINE_TEST_SYSFS=" + sysfs()) + "taskset -c 0 " MACHINE " wait carried", 90);
  });
  wait_until(has_facts);
  std::ofstream(port) << "3000\n";
  std::ofstream(directory / "carried");
  job.join();
  ASSERT_TRUE(ended.by_itself(0)) << ended.err;
  const analysis::Trace trace = load();
  const analysis::Rank& rank = trace.ranks.at(0);
  const std::map<std::string, std::string> expected = {
      {"cpus_allowed", "0"},
      {"numa_nodes", "0"},
      {"numa_nodes_online", "0-1"},
      {"cpus_online", "0-3"},
      {"limit_open_files", "300"},
      {"nic.eth7", "25000 Mbit/s, NUMA node 1"},
      {"hca.mlx5_3/1", "InfiniBand 200 Gb/sec (4X HDR), ACTIVE, NUMA node 0"},
      {"memory_bytes", std::to_string(sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE))}};
  for (const auto& [key, value] : expected) EXPECT_EQ(analysis::fact(rank, key), value) << key;
  EXPECT_EQ(analysis::fact(rank, "nic.virtual0"), "");
  rlimit stack{};
  getrlimit(RLIMIT_STACK, &stack);
  EXPECT_EQ(analysis::fact(rank, "limit_stack"),
            stack.rlim_cur == RLIM_INFINITY ? "unlimited" : std::to_string(stack.rlim_cur));

  const Samples* sent = find_counter(rank, "bytes sent", "mlx5_3/1");
  ASSERT_NE(sent, nullptr);
  EXPECT_EQ(rise(*sent), 4 * 1000);
  EXPECT_EQ(rise(*find_counter(rank, "bytes received", "mlx5_3/1")), 0);
  EXPECT_THAT(findings_of(trace), HasSubstr("Rank 0 may open only 300 files"));
}

TEST_F(RecordCounters, GpusAgreeWithNvml) {
  const Ended ended = run(recorded("LD_LIBRARY_PATH=" NVML) + MACHINE " work 1600");
  ASSERT_TRUE(ended.by_itself(0)) << ended.err;
  EXPECT_EQ(ended.err, "");
  const analysis::Trace trace = load();
  const analysis::Rank& rank = trace.ranks.at(0);
  EXPECT_EQ(analysis::fact(rank, "gpu.0"), "Stand-in A, 8589934592 bytes, PCI 0000:18:00.0");
  EXPECT_THAT(analysis::fact(rank, "gpu.1"), HasSubstr("PCI 0000:19:00.0"));
  EXPECT_EQ(analysis::fact(rank, "gpu_link.0-1"), "4 NVLinks, PCIe: one NUMA node");
  EXPECT_EQ(analysis::fact(rank, "gpus_visible"), "0-1");
  const auto last = [&](const char* name, const char* device) {
    const Samples* samples = find_counter(rank, name, device);
    return samples == nullptr ? -1 : samples->value.back();
  };
  EXPECT_EQ(last("use", "GPU 0"), 40);
  EXPECT_EQ(last("use", "GPU 1"), 41);
  EXPECT_EQ(last("SM clock", "GPU 0"), 1980);
  EXPECT_EQ(last("memory clock", "GPU 0"), -1) << "this GPU does not tell it";
  EXPECT_EQ(last("power", "GPU 1"), 350'001);
  EXPECT_EQ(last("throttle reasons", "GPU 1"), 0x40);
  EXPECT_EQ(last("XID error", "GPU 1"), 79);
  EXPECT_EQ(last("XID error", "GPU 0"), -1) << "none came";
  // Each sampling asks anew.
  const Samples* memory = find_counter(rank, "memory used", "GPU 0");
  ASSERT_NE(memory, nullptr);
  EXPECT_GE(memory->size(), 3u);
  EXPECT_EQ(rise(*memory), static_cast<double>(memory->size() - 1));
  const std::string findings = findings_of(trace);
  EXPECT_THAT(findings, HasSubstr("GPU 1 of rank 0 on "));
  EXPECT_THAT(findings, HasSubstr("reported XID error 79."));
  EXPECT_THAT(findings, HasSubstr("slowed down for heat or power in 100.0 % of its samples"));
}

TEST_F(RecordCounters, OnlyVisibleGpusHaveCountersAndAllHaveFacts) {
  put("bus/pci/devices/0000:19:00.0/numa_node", "1\n");
  for (const auto& [visible, expected] : {std::pair("GPU-one", "1"), {"1,5,0", "1"}, {"", ""}}) {
    std::filesystem::remove_all(directory / "run");
    const std::string variables =
        fmt::format("LD_LIBRARY_PATH={} CUDA_VISIBLE_DEVICES={} STAND_IN_NVSWITCH=1 PACELINE_TEST_SYSFS={}", NVML,
                    visible, sysfs());
    ASSERT_TRUE(run(recorded(variables) + MACHINE " work 1300").by_itself(0));
    const analysis::Trace trace = load();
    EXPECT_EQ(analysis::fact(trace.ranks.at(0), "gpus_visible"), expected);
    EXPECT_EQ(analysis::fact(trace.ranks[0], "gpu.1"), "Stand-in B, 8589934592 bytes, PCI 0000:19:00.0, NUMA node 1");
    EXPECT_EQ(analysis::fact(trace.ranks[0], "gpu_link.0-1"), "4 NVLinks to NVSwitch, PCIe: one NUMA node");
    EXPECT_EQ(find_counter(trace.ranks[0], "use", "GPU 0"), nullptr);
    EXPECT_EQ(find_counter(trace.ranks[0], "use", "GPU 1") != nullptr, *expected != '\0');
  }
}

TEST_F(RecordCounters, AreSampledAtTheGivenRateAndNotAtZero) {
  ASSERT_TRUE(run(recorded("PACELINE_COUNTERS_US=5000") + MACHINE " work 900").by_itself(0));
  const analysis::Trace often = load();
  const Samples& cpu = *find_counter(often.ranks.at(0), "CPU time");
  // 100 in half a second; while the machine is slow their distance doubles, and may double again.
  std::int64_t shortest_ns = std::numeric_limits<std::int64_t>::max();  // that has 40
  for (std::size_t last = 39; last < cpu.size(); ++last) {
    shortest_ns = std::min<std::int64_t>(shortest_ns, cpu.time_ns[last] - cpu.time_ns[last - 39]);
  }
  EXPECT_LE(shortest_ns, 500'000'000);
  EXPECT_LE(static_cast<double>(cpu.size()), most_samples(cpu, 5));
  std::filesystem::remove_all(directory / "run");
  ASSERT_TRUE(run(recorded("PACELINE_COUNTERS_US=0 PACELINE_SCHEDULER=0") + MACHINE " work 200").by_itself(0));
  const analysis::Trace none = load();
  EXPECT_EQ(none.ranks.at(0).counter_events, 0u);
  EXPECT_TRUE(none.ranks[0].facts.empty());
}

TEST_F(RecordCounters, LeaveFilesOfTheProgramAlone) {
  Ended ended;
  std::thread job([&] { ended = run(recorded() + MACHINE " close 400", 90); });
  wait_until(has_facts);
  std::ofstream(directory / "sampled");
  job.join();
  ASSERT_TRUE(ended.by_itself(0)) << ended.status;
  std::ifstream own(directory / "own.txt");
  const std::string text{std::istreambuf_iterator<char>(own), {}};
  EXPECT_EQ(text, std::string(100, 'x') + std::string(100, 'y'));
  const analysis::Trace trace = load();
  // Counters that need no file go on. Counters from closed files ended, and their values were right.
  const Samples* cpu = find_counter(trace.ranks.at(0), "CPU time");
  const Samples* memory = find_counter(trace.ranks[0], "memory, resident");
  ASSERT_NE(memory, nullptr);
  EXPECT_LT(memory->size(), cpu->size());
  EXPECT_GT(*std::min_element(memory->value.begin(), memory->value.end()), 100'000);
}

TEST_F(RecordCounters, EndWithTheProcessAndNotInItsChild) {
  const Ended ended = run(recorded() + MACHINE " fork 200");
  ASSERT_TRUE(ended.by_itself(0)) << ended.err;
  ASSERT_EQ(files().size(), 1u);
  EXPECT_EQ(files()[0].file.header.closed, 1u);
  EXPECT_EQ(files()[0].of(format::EventType::process_end).size(), 1u);
  const analysis::Trace trace = load();
  const Samples* cpu = find_counter(trace.ranks.at(0), "CPU time");
  ASSERT_NE(cpu, nullptr);
  EXPECT_TRUE(std::is_sorted(cpu->value.begin(), cpu->value.end()));
}

// A control group of the test's own, of version 1 or 2; `folder` is empty where none can be made.
class OwnCgroup {
 public:
  // Gives the group a fifth of a CPU.
  OwnCgroup() {
    const std::string name = "paceline-test-" + std::to_string(getpid());
    for (const bool v2 : {false, true}) {
      std::filesystem::path at = (v2 ? "/sys/fs/cgroup/" : "/sys/fs/cgroup/cpu/") + name;
      std::error_code error;
      if (!std::filesystem::create_directory(at, error)) continue;
      folder = at;
      if (write(v2 ? "cpu.max" : "cpu.cfs_quota_us", v2 ? "20000 100000" : "20000")) return;
      std::filesystem::remove(folder, error);
      folder.clear();
    }
  }
  ~OwnCgroup() {
    std::error_code error;
    if (!folder.empty()) std::filesystem::remove(folder, error);
  }

  std::filesystem::path folder;

 private:
  bool write(const char* file, const char* text) const {
    std::ofstream out(folder / file, std::ios::app);  // without truncation, which cgroups do not know
    return static_cast<bool>(out << text << std::flush);
  }
};

TEST_F(RecordCounters, AThrottledCgroupIsAFinding) {
  const OwnCgroup group;
  if (group.folder.empty()) GTEST_SKIP() << "no control group with a CPU limit can be made here (it needs root)";
  const Ended ended =
      run("echo $$ > " + (group.folder / "cgroup.procs").string() + " && " + recorded() + MACHINE " work 1500");
  ASSERT_TRUE(ended.by_itself(0)) << ended.err;
  const analysis::Trace trace = load();
  const analysis::RankSummary rank = analysis::summarise(trace).at(0);
  EXPECT_EQ(analysis::fact(rank, "cgroup"), group.folder.string());
  EXPECT_EQ(analysis::fact(rank, "cgroup_cpus"), "0.2");
  ASSERT_TRUE(rank.cgroup);
  // A period takes 100 ms. The program would use a whole CPU.
  EXPECT_GT(rank.cgroup->periods, 5);
  EXPECT_GT(rank.cgroup->throttled_periods, rank.cgroup->periods / 3);
  EXPECT_LE(rank.cgroup->throttled_periods, rank.cgroup->periods);
  EXPECT_GT(rank.cgroup->throttled_s, 0.2);
  EXPECT_THAT(findings_of(trace), HasSubstr("The cgroup of rank 0 limits it to 0.2 CPUs: it was throttled in "));
  EXPECT_THAT(analysis::machine_lines(analysis::identities(trace)),
              ::testing::Contains(HasSubstr("limited to 0.2 CPUs")));
}

}  // namespace
}  // namespace paceline::test
