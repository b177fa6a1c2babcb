// SPDX-License-Identifier: Apache-2.0
// Measures how fast `paceline query` scans, groups and finds slices, each beside a plain loop over the columns.
//
// usage: query_bench [--benchmark_…] [TRACE]       TRACE: a run to measure on instead of 4 million slices made here
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <string>

#include "analysis/load/load.h"
#include "analysis/query/query.h"
#include "analysis/trace/builder.h"
#include "analysis/trace/slice_id.h"

namespace paceline::query_bench {
namespace {

using analysis::KindId;
using analysis::Slices;
using analysis::Trace;

// 2 ranks with 2 million slices each, two levels deep, of 16 names.
Trace made_trace() {
  analysis::TraceBuilder run;
  for (int r = 0; r < 2; ++r) {
    analysis::RankBuilder& rank = run.add_rank(r, 2);
    analysis::TrackBuilder& main = rank.add_main_thread();
    KindId kinds[16];
    for (int k = 0; k < 16; ++k) kinds[k] = rank.kind(fmt::format("MPI_{}", k), "mpi", "wait");
    for (std::int64_t i = 0; i < 1'000'000; ++i) {
      main.add_slice(200 * i, 200 * i + 180, kinds[i % 5]);
      main.add_slice(200 * i + 20, 200 * i + 100 + i % 50, kinds[5 + i % 11]);
    }
  }
  return run.finish();
}

template <class Visit>
void each_track(const Trace& trace, Visit&& visit) {
  for (const analysis::Rank& rank : trace.ranks) {
    for (const analysis::Track& track : rank.tracks) visit(track.slices);
  }
}

double count_of(const Trace& trace) {
  double count = 0;
  each_track(trace, [&](const Slices& slices) { count += static_cast<double>(slices.size()); });
  return count;
}

class LastRow : public analysis::QuerySink {
 public:
  void begin(std::vector<std::string>) override {}
  void row(std::span<const analysis::QueryValue> values) override {
    if (const auto* value = std::get_if<std::int64_t>(&values.back())) sum += *value;
  }
  void end() override {}
  std::int64_t sum = 0;  // of the last column
};

void sql(benchmark::State& state, const Trace& trace, const std::string& text, double rows) {
  analysis::QueryRunner runner(trace);
  LastRow last;
  runner.run(text, last);  // makes the indexes that it needs
  for (auto _ : state) {
    runner.run(text, last);
    benchmark::DoNotOptimize(last.sum);
  }
  state.counters["rows/s"] = benchmark::Counter(rows, benchmark::Counter::kIsIterationInvariantRate);
}

// The same with the indexes made each time.
void first_sql(benchmark::State& state, const Trace& trace, const std::string& text, double rows) {
  for (auto _ : state) {
    analysis::QueryRunner runner(trace);
    LastRow last;
    runner.run(text, last);
    benchmark::DoNotOptimize(last.sum);
  }
  state.counters["rows/s"] = benchmark::Counter(rows, benchmark::Counter::kIsIterationInvariantRate);
}

template <class Work>
void loop(benchmark::State& state, double rows, Work&& work) {
  for (auto _ : state) benchmark::DoNotOptimize(work());
  state.counters["rows/s"] = benchmark::Counter(rows, benchmark::Counter::kIsIterationInvariantRate);
}

std::int64_t sum_by_kind(const Trace& trace) {
  std::vector<std::int64_t> sums(trace.kinds.size());
  each_track(trace, [&](const Slices& slices) {
    for (std::size_t i = 0; i < slices.size(); ++i) sums[slices.kind[i]] += slices.duration_ns[i];
  });
  return *std::ranges::max_element(sums);
}

std::int64_t sum_of_kind(const Trace& trace, KindId kind) {
  std::int64_t sum = 0;
  each_track(trace, [&](const Slices& slices) {
    for (std::size_t i = 0; i < slices.size(); ++i) {
      if (slices.kind[i] == kind) sum += slices.duration_ns[i];
    }
  });
  return sum;
}

std::int64_t overlapping(const Trace& trace, std::int64_t from, std::int64_t to) {
  std::int64_t sum = 0;
  each_track(trace, [&](const Slices& slices) {
    const auto end = std::ranges::lower_bound(slices.start_ns, to) - slices.start_ns.begin();
    for (std::size_t i = 0; i < static_cast<std::size_t>(end); ++i) {
      if (slices.end_ns(i) > from) sum += slices.duration_ns[i];
    }
  });
  return sum;
}

void add_benchmarks(const Trace& trace) {
  const double rows = count_of(trace);
  const auto set_up = [](benchmark::internal::Benchmark* made) { made->Unit(benchmark::kMillisecond)->UseRealTime(); };
  const auto add_sql = [&](const std::string& name, const std::string& text, double of) {
    set_up(benchmark::RegisterBenchmark(("sql/" + name).c_str(), sql, std::cref(trace), text, of));
  };
  const auto add_loop = [&](const std::string& name, double of, auto work) {
    set_up(benchmark::RegisterBenchmark(("loop/" + name).c_str(),
                                        [of, work](benchmark::State& state) { loop(state, of, work); }));
  };
  const auto& main = trace.ranks.front().tracks.front().slices;
  const std::int64_t from = main.start_ns[main.size() / 2], to = from + 1'000'000;
  const std::string kind_name = trace.name_of(main, main.size() / 2);
  const KindId kind = main.kind[main.size() / 2];

  add_sql("count", "SELECT count(*) FROM slices", rows);
  add_sql("sum", "SELECT sum(duration_ns) FROM slices", rows);
  add_loop("sum", rows, [&trace] {
    std::int64_t sum = 0;
    each_track(trace, [&](const Slices& slices) {
      for (const std::int64_t duration : slices.duration_ns) sum += duration;
    });
    return sum;
  });
  const std::string by_kind = "SELECT kind, sum(duration_ns) FROM slices GROUP BY kind";
  set_up(benchmark::RegisterBenchmark("sql/first_group_by_kind", first_sql, std::cref(trace), by_kind, rows));
  add_sql("group_by_kind", by_kind, rows);
  add_sql("group_by_rank_and_name", "SELECT rank, name, sum(duration_ns) FROM slices GROUP BY rank, name", rows);
  add_sql("kinds", "SELECT name, duration_ns FROM kinds", rows);
  add_loop("group_by_kind", rows, [&trace] { return sum_by_kind(trace); });
  add_sql("name", fmt::format("SELECT sum(duration_ns) FROM slices WHERE name = '{}'", kind_name), rows);
  add_loop("name", rows, [&trace, kind] { return sum_of_kind(trace, kind); });
  add_sql("longest", "SELECT id, duration_ns FROM slices ORDER BY duration_ns DESC LIMIT 10", rows);
  add_sql("window", fmt::format("SELECT sum(duration_ns) FROM slices WHERE start_ns < {} AND end_ns > {}", to, from),
          1);
  add_loop("window", 1, [&trace, from, to] { return overlapping(trace, from, to); });
  add_sql("first_100_by_start", "SELECT start_ns FROM slices ORDER BY start_ns LIMIT 100", 100);
  add_sql("one_id",
          fmt::format("SELECT duration_ns FROM slices WHERE id = {}",
                      analysis::slice_id(0, static_cast<std::uint32_t>(main.size() / 2))),
          1);
  add_sql("100000_ids",
          fmt::format("WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 99999) "
                      "SELECT sum(s.duration_ns) FROM n CROSS JOIN slices AS s ON s.id = i * {}",
                      main.size() / 100'000),
          100'000);
}

}  // namespace
}  // namespace paceline::query_bench

int main(int argc, char** argv) {
  using namespace paceline;
  benchmark::Initialize(&argc, argv);
  if (argc > 2) {
    std::cerr << "query_bench: expected at most one trace, got " << argc - 1 << " arguments\n";
    return 2;
  }
  try {
    const analysis::Trace trace = argc == 2 ? analysis::load_run(argv[1]) : query_bench::made_trace();
    if (trace.ranks.empty() || trace.ranks.front().tracks.empty() ||
        trace.ranks.front().tracks.front().slices.size() < 100'000) {
      std::cerr << "query_bench: the first track needs at least 100,000 slices\n";
      return 2;
    }
    query_bench::add_benchmarks(trace);
    benchmark::RunSpecifiedBenchmarks();
  } catch (const std::exception& error) {
    std::cerr << "query_bench: " << error.what() << '\n';
    return 1;
  }
}
