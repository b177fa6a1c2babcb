// SPDX-License-Identifier: Apache-2.0
// What a range costs the thread that records it, beside the two clock reads that it cannot do without.
//
//   recorder_bench          # the last lines are the ratios; targets: registered ≤ 2 reads + 10 ns, ASCII 30 ns more,
//                           # two threads at once ≤ 10 % dearer than one, beyond what plain work is
//
// Two threads at once may cost more because of the machine: two CPUs that are halves of one core, or share its memory
// with others. So the same two threads do plain work of the same sort, clock reads and stores to memory of their own,
// and the recorder's rise is printed beside that one's.
//
// And what a sampling of the counters costs its thread; target: below 50 µs, which is 0.1 % of a CPU at 20 Hz.
//
// Each measurement is 100,000 ranges, 20 times over, with pauses in which the drain catches up, as it does in programs
// that have other things to do; the median counts, of the thread's own CPU time, so that a busy machine shows little.
#include <benchmark/benchmark.h>
#include <nvtx3/nvToolsExtPayload.h>
#include <stdlib.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif
#include <time.h>

extern "C" void push_and_pop_without_tool(void);

namespace {

constexpr int ranges = 100'000;
constexpr int repetitions = 20;

void let_drain_catch_up() { usleep(60'000); }

std::uint64_t read_clock() {
#if defined(__x86_64__)
  return __rdtsc();
#else
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC_RAW, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
#endif
}

void clock_read(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(read_clock());
}

// As a push and a pop of a registered string: two clock reads, two slots of 16 bytes, one chunk after another.
void plain_work(benchmark::State& state) {
  struct alignas(16) Stamp {
    std::uint64_t low, high;
  };
  constexpr std::size_t chunk = 4096, chunks = 16;
  static thread_local std::vector<Stamp> memory(chunk * chunks);
  std::size_t next = 0;
  let_drain_catch_up();
  for (auto _ : state) {
    for (int event = 0; event < 2; ++event) {
      Stamp& stamp = memory[next];
      stamp.low = next;
      std::atomic_ref<std::uint64_t>(stamp.high).store(read_clock(), std::memory_order_release);
      next = (next + 1) % memory.size();
    }
    benchmark::ClobberMemory();
  }
}
void two_threads_plain(benchmark::State& state) { plain_work(state); }

void no_tool(benchmark::State& state) {
  for (auto _ : state) push_and_pop_without_tool();
}

void ascii_message(benchmark::State& state) {
  let_drain_catch_up();
  for (auto _ : state) {
    nvtxRangePushA("layer1.0.conv1");
    nvtxRangePop();
  }
}

nvtxEventAttributes_t registered(nvtxDomainHandle_t domain, const char* name) {
  nvtxEventAttributes_t attributes{};
  attributes.version = NVTX_VERSION;
  attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  attributes.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  attributes.message.registered = nvtxDomainRegisterStringA(domain, name);
  attributes.category = 3;
  return attributes;
}

void ranges_of(benchmark::State& state, const char* domain_name) {
  const nvtxDomainHandle_t domain = nvtxDomainCreateA(domain_name);
  const nvtxEventAttributes_t attributes = registered(domain, "layer1.0.conv1");
  let_drain_catch_up();
  for (auto _ : state) {
    nvtxDomainRangePushEx(domain, &attributes);
    nvtxDomainRangePop(domain);
  }
}
void registered_string(benchmark::State& state) { ranges_of(state, "bench"); }
void two_threads(benchmark::State& state) { ranges_of(state, "bench"); }
void filtered_domain(benchmark::State& state) { ranges_of(state, "filtered"); }

// What NCCL gives with an allreduce: 24 bytes, whose schema is known.
void extended_payload(benchmark::State& state) {
  const struct {
    std::uint64_t communicator;
    std::size_t bytes;
    int operation;
  } values{1, 2, 3};
  const nvtxDomainHandle_t domain = nvtxDomainCreateA("bench");
  const nvtxPayloadData_t payload{NVTX_PAYLOAD_SCHEMA_ID_STATIC_START, sizeof values, &values};
  nvtxEventAttributes_t attributes = registered(domain, "ncclAllReduce");
  attributes.payloadType = NVTX_PAYLOAD_TYPE_EXT;
  attributes.reserved0 = 1;
  attributes.payload.ullValue = NVTX_POINTER_AS_PAYLOAD_ULLVALUE(&payload);
  let_drain_catch_up();
  for (auto _ : state) {
    nvtxDomainRangePushEx(domain, &attributes);
    nvtxDomainRangePop(domain);
  }
}

void with_payload(benchmark::State& state) {
  nvtxEventAttributes_t attributes = registered(nullptr, "iteration");
  attributes.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
  attributes.payload.ullValue = 1;
  let_drain_catch_up();
  for (auto _ : state) {
    nvtxDomainRangePushEx(nullptr, &attributes);
    nvtxDomainRangePop(nullptr);
  }
}

BENCHMARK(clock_read)->Iterations(ranges)->Repetitions(repetitions)->ReportAggregatesOnly();
BENCHMARK(no_tool)->Iterations(ranges)->Repetitions(repetitions)->ReportAggregatesOnly();
BENCHMARK(registered_string)->Iterations(ranges)->Repetitions(repetitions)->ReportAggregatesOnly();
BENCHMARK(ascii_message)->Iterations(ranges)->Repetitions(repetitions)->ReportAggregatesOnly();
BENCHMARK(two_threads)->Threads(2)->Iterations(ranges)->Repetitions(repetitions)->ReportAggregatesOnly();
BENCHMARK(plain_work)->Iterations(ranges)->Repetitions(repetitions)->ReportAggregatesOnly();
BENCHMARK(two_threads_plain)->Threads(2)->Iterations(ranges)->Repetitions(repetitions)->ReportAggregatesOnly();
BENCHMARK(with_payload)->Iterations(ranges)->Repetitions(repetitions)->ReportAggregatesOnly();
BENCHMARK(extended_payload)->Iterations(ranges)->Repetitions(repetitions)->ReportAggregatesOnly();
BENCHMARK(filtered_domain)->Iterations(ranges)->Repetitions(repetitions)->ReportAggregatesOnly();

class Ratios : public benchmark::ConsoleReporter {
 public:
  void ReportRuns(const std::vector<Run>& runs) override {
    ConsoleReporter::ReportRuns(runs);
    for (const Run& run : runs) {
      if (run.aggregate_name == "median") medians_[run.run_name.function_name] = run.GetAdjustedCPUTime();
    }
  }
  void print() {
    const double read = medians_["clock_read"];
    for (const char* name : {"no_tool", "filtered_domain", "registered_string", "two_threads", "ascii_message",
                             "with_payload", "extended_payload"}) {
      std::printf("%-18s %6.1f ns a range = %5.2f clock reads; %+6.1f ns over two reads\n", name, medians_[name],
                  medians_[name] / read, medians_[name] - 2 * read);
    }
    std::printf("a clock read %.1f ns; ASCII %+.1f ns over registered\n", read,
                medians_["ascii_message"] - medians_["registered_string"]);
    const double recorder = medians_["two_threads"] / medians_["registered_string"];
    const double plain = medians_["two_threads_plain"] / medians_["plain_work"];
    std::printf("two threads at once: recorder %+.1f %%, plain work %+.1f %%; the recorder's own part %+.1f %%\n",
                100 * (recorder - 1), 100 * (plain - 1), 100 * (recorder / plain - 1));
  }

 private:
  std::map<std::string, double> medians_;
};

// The counter thread by the scheduler's own account: its time on a CPU, and how often it went to sleep.
struct SamplingThread {
  double cpu_us = 0;
  std::uint64_t samplings = 0;
};

SamplingThread sampling_thread() {
  SamplingThread found;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name, word;
    std::ifstream(task.path() / "comm") >> name;
    if (name != "paceline-count") continue;
    double ns = 0;
    std::ifstream(task.path() / "schedstat") >> ns;
    found.cpu_us = ns * 1e-3;
    std::ifstream status(task.path() / "status");
    while (status >> word) {
      if (word == "voluntary_ctxt_switches:") status >> found.samplings;
    }
  }
  return found;
}

void print_sampling_cost() {
  const SamplingThread before = sampling_thread();
  sleep(3);
  const SamplingThread after = sampling_thread();
  if (after.samplings <= before.samplings) {
    std::printf("no counter thread was found\n");
    return;
  }
  const double cost = (after.cpu_us - before.cpu_us) / static_cast<double>(after.samplings - before.samplings);
  std::printf("%-18s %6.1f us of CPU time a sampling, %llu samplings; at 20 Hz %.3f %% of a CPU\n", "counters", cost,
              static_cast<unsigned long long>(after.samplings - before.samplings), cost * 20 * 1e-4);
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  push_and_pop_without_tool();  // its copy of NVTX looks for a tool now, and finds none
  char directory[] = "/tmp/paceline-bench-XXXXXX";
  if (mkdtemp(directory) == nullptr) return 1;
  setenv("PACELINE_OUTPUT", directory, 1);
  setenv("PACELINE_NVTX_EXCLUDE_DOMAINS", "filtered", 1);
  setenv("NVTX_INJECTION64_PATH", RECORDER, 1);
  Ratios ratios;
  benchmark::RunSpecifiedBenchmarks(&ratios);
  ratios.print();
  print_sampling_cost();
  std::filesystem::remove_all(directory);
  return 0;
}
