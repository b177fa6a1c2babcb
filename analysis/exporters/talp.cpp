// SPDX-License-Identifier: Apache-2.0
// The efficiencies of the POP Centre of Excellence in the JSON of DLB's TALP, which talp-pages reads. As in TALP,
// useful is the time of the main threads outside MPI and CUDA calls, and outside PyTorch's communication; times are
// sums over the ranks in ns, and a GPU is one for each rank that used one.
#include <algorithm>
#include <cmath>
#include <ctime>
#include <map>
#include <nlohmann/json.hpp>

#include "analysis/device/gpu.h"
#include "analysis/exporters/exporter.h"
#include "analysis/phases/phase_rules.h"
#include "analysis/text/text_output.h"
#include "analysis/trace/intervals.h"

namespace paceline::analysis {
namespace talp {

struct RankTimes {
  std::int64_t elapsed_ns = 0, mpi_ns = 0, runtime_ns = 0;  // the latter two do not overlap
  std::int64_t gpu_useful_ns = 0, gpu_communication_ns = 0;
  std::uint64_t mpi_calls = 0, runtime_calls = 0;
  bool has_gpu = false;

  std::int64_t useful_ns() const { return elapsed_ns - mpi_ns - runtime_ns; }
  std::int64_t outside_mpi_ns() const { return elapsed_ns - mpi_ns; }
  std::int64_t gpu_active_ns() const { return gpu_useful_ns + gpu_communication_ns; }
};

RankTimes times_of(const ExportJob& job, const PhaseTable& table, const Rank& rank) {
  RankTimes times;
  const auto within = job.selection().clipped(rank.start_ns, rank.end_ns);
  if (!within) return times;
  const Intervals window{{within->from_ns, within->until_ns}};
  times.elapsed_ns = total_ns(window);
  Intervals mpi, runtime;
  if (const Track* main = main_track(rank)) {
    const Names& names = job.trace().names;
    const NameId of_mpi = names.find("mpi"), of_torch = names.find("torch"), of_cuda = names.find("cuda");
    job.each(main->slices, [&](const SelectedSlice& slice) {
      const KindId kind = main->slices.kind[slice.index];
      const NameId domain = job.trace().kinds[kind].domain;
      if (domain == 0) return;
      const bool communicates = domain == of_mpi || (domain == of_torch && table.phase(kind) == Phase::communication);
      if (!communicates && domain != of_cuda) return;
      (communicates ? mpi : runtime).push_back({slice.start_ns, slice.end_ns()});
      ++(communicates ? times.mpi_calls : times.runtime_calls);
    });
  }
  mpi = merged(std::move(mpi));
  times.mpi_ns = total_ns(mpi);
  times.runtime_ns = total_ns(without(merged(std::move(runtime)), mpi));
  const GpuActivity gpu = gpu_activity(table, rank);
  times.has_gpu = !gpu.empty();
  times.gpu_useful_ns = total_ns(common(gpu.compute, window));
  times.gpu_communication_ns = total_ns(common(without(gpu.all, gpu.compute), window));
  return times;
}

// Two digits, as TALP has them; nothing to divide by is no loss.
double ratio(double part, double whole) { return whole > 0 ? std::round(100 * part / whole) / 100 : 1; }

nlohmann::ordered_json region(const std::vector<RankTimes>& ranks, const std::vector<std::string>& nodes) {
  RankTimes sum, most;
  std::map<std::string, std::pair<double, double>> by_node;  // time outside MPI: its sum, and the number of ranks
  std::size_t gpus = 0;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const RankTimes& rank = ranks[r];
    sum.elapsed_ns += rank.elapsed_ns, most.elapsed_ns = std::max(most.elapsed_ns, rank.elapsed_ns);
    sum.mpi_ns += rank.mpi_ns, sum.runtime_ns += rank.runtime_ns;
    sum.mpi_calls += rank.mpi_calls, sum.runtime_calls += rank.runtime_calls;
    sum.gpu_useful_ns += rank.gpu_useful_ns, sum.gpu_communication_ns += rank.gpu_communication_ns;
    gpus += rank.has_gpu;
    auto& [outside_ns, count] = by_node[nodes[r]];
    outside_ns += static_cast<double>(rank.outside_mpi_ns());
    ++count;
  }
  const auto largest = [&](auto of) {
    std::int64_t largest_ns = 0;
    for (const RankTimes& rank : ranks) largest_ns = std::max(largest_ns, (rank.*of)());
    return largest_ns;
  };
  const auto elapsed = static_cast<double>(most.elapsed_ns), count = static_cast<double>(ranks.size());
  const auto outside = static_cast<double>(sum.outside_mpi_ns()), useful = static_cast<double>(sum.useful_ns());
  const auto busiest = static_cast<double>(largest(&RankTimes::outside_mpi_ns));
  double busiest_node = 0;  // the largest mean of a node
  for (const auto& [node, time] : by_node) busiest_node = std::max(busiest_node, time.first / time.second);
  std::int64_t useful_gpu_ns = 0;
  for (const RankTimes& rank : ranks) useful_gpu_ns = std::max(useful_gpu_ns, rank.gpu_useful_ns);
  const std::int64_t active_gpu_ns = largest(&RankTimes::gpu_active_ns);
  const auto gpu_useful = static_cast<double>(sum.gpu_useful_ns), most_gpu = static_cast<double>(useful_gpu_ns),
             most_active = static_cast<double>(active_gpu_ns), gpu_count = static_cast<double>(gpus);
  return {{"numCpus", ranks.size()},
          {"numMpiRanks", ranks.size()},
          {"numNodes", by_node.size()},
          {"avgCpus", count},
          {"numGpus", gpus},
          {"cycles", 0},
          {"instructions", 0},
          {"numMeasurements", 1},
          {"numMpiCalls", sum.mpi_calls},
          {"numOmpParallels", 0},
          {"numOmpTasks", 0},
          {"numGpuRuntimeCalls", sum.runtime_calls},
          {"elapsedTime", most.elapsed_ns},
          {"usefulTime", sum.useful_ns()},
          {"mpiTime", sum.mpi_ns},
          {"ompLoadImbalanceTime", 0},
          {"ompSchedulingTime", 0},
          {"ompSerializationTime", 0},
          {"gpuRuntimeTime", sum.runtime_ns},
          {"minMpiNormdProc", 0},
          {"minMpiNormdNode", 0},
          {"gpuUsefulTime", sum.gpu_useful_ns},
          {"gpuCommunicationTime", sum.gpu_communication_ns},
          {"maxGpuUsefulTime", useful_gpu_ns},
          {"maxGpuActiveTime", active_gpu_ns},
          {"parallelEfficiency", ratio(useful, elapsed * count)},
          {"mpiParallelEfficiency", ratio(outside, elapsed * count)},
          {"mpiCommunicationEfficiency", ratio(busiest, elapsed)},
          {"mpiLoadBalance", ratio(outside, busiest * count)},
          {"mpiLoadBalanceIn", ratio(busiest_node, busiest)},
          {"mpiLoadBalanceOut", ratio(outside, busiest_node * count)},
          {"ompParallelEfficiency", 1.0},
          {"ompLoadBalance", 1.0},
          {"ompSchedulingEfficiency", 1.0},
          {"ompSerializationEfficiency", 1.0},
          {"deviceOffloadEfficiency", ratio(useful, outside)},
          {"gpuParallelEfficiency", ratio(gpu_useful, elapsed * gpu_count)},
          {"gpuLoadBalance", ratio(gpu_useful, most_gpu * gpu_count)},
          {"gpuCommunicationEfficiency", ratio(most_gpu, most_active)},
          {"gpuOrchestrationEfficiency", ratio(most_active, gpus > 0 ? elapsed : 0)}};
}

// When the run began; of formats without a date, now.
std::string timestamp(const ExportJob& job) {
  const auto began_ns = job.utc_of_zero_ns();
  const std::time_t seconds = began_ns ? *began_ns / 1'000'000'000 : std::time(nullptr);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char text[32] = {};
  std::strftime(text, sizeof text, "%FT%T", &parts);
  return text;
}

void write(const ExportJob& job, std::FILE* file) {
  const PhaseTable table(job.trace());
  std::vector<RankTimes> ranks;
  std::vector<std::string> nodes;
  for (const Rank* rank : job.ranks()) {
    ranks.push_back(times_of(job, table, *rank));
    nodes.push_back(rank->host);
  }
  const nlohmann::ordered_json global = region(ranks, nodes);
  // The readers of talp-pages choose the keys by DLB's version.
  nlohmann::ordered_json document = {{"dlbVersion", "3.6, written by paceline"}, {"timestamp", timestamp(job)}};
  for (const char* key : {"numCpus", "numNodes", "numMpiRanks", "numGpus"}) document["resources"][key] = global[key];
  document["Application"]["Global"] = global;
  TextOutput out(file);
  out.text(document.dump(2));
  out.text("\n");
  out.flush();
}

}  // namespace talp

constexpr Exporter talp_exporter{.name = "talp",
                                 .what = "POP efficiencies as DLB's TALP writes them, for talp-pages",
                                 .target = Exporter::Target::stream,
                                 .write = talp::write};

}  // namespace paceline::analysis
