// The whole way of a hand-made job: through a .pace file and the program `paceline` it has the figures that it has as a
// trace in memory.
#include <bit>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "analysis/report/build.h"
#include "analysis/report/render.h"
#include "profiler/format/mpi_functions.h"
#include "profiler/format/writer.h"
#include "tests/integration/command.h"
#include "tests/unit/analysis/report_job.h"

namespace paceline::analysis {
namespace {

using format::EventType;
using nlohmann::json;

// Writes the main thread of a rank as the recorder would have: NVTX ranges and marks, and MPI_Allreduce.
class RankFile {
 public:
  RankFile(const Trace& trace, const Rank& rank) : trace_(trace), rank_(rank), writer_(facts(rank)) {}

  void write(const fs::path& path) {
    const Track& main = *main_track(rank_);
    for (std::size_t i = 0; i < main.slices.size(); ++i) {
      steps_.push_back({main.slices.start_ns[i], begins, static_cast<std::int64_t>(i)});
      steps_.push_back({main.slices.end_ns(i), ends, -static_cast<std::int64_t>(i)});  // the inner one first
    }
    for (std::size_t i = 0; i < main.marks.size(); ++i) {
      steps_.push_back({main.marks.start_ns[i], marks, static_cast<std::int64_t>(i)});
    }
    std::ranges::sort(steps_);
    for (const Step& step : steps_) {
      const auto i = static_cast<std::size_t>(std::abs(step.which));
      if (step.what == marks) range(step.ns, EventType::mark, main.marks, i);
      if (step.what == begins) begin(step.ns, main.slices, i);
      if (step.what == ends) end(step.ns, main.slices, i);
    }
    writer_.write(path);
  }

 private:
  enum What { ends, marks, begins };  // in this order where times are equal
  struct Step {
    std::int64_t ns;
    What what;
    std::int64_t which;
    auto operator<=>(const Step&) const = default;
  };
  static constexpr auto allreduce = static_cast<std::uint64_t>(format::MpiId::Allreduce);

  static format::HeaderFacts facts(const Rank& rank) {
    format::HeaderFacts facts;
    facts.file_id = 40 + static_cast<std::uint64_t>(rank.rank);
    facts.pid = 100 + static_cast<std::uint32_t>(rank.rank);
    facts.ticks_per_second = 1e9;
    facts.start_ticks = 5'000'000;
    facts.start_utc_ns = 1'700'000'000'000'000'000;
    facts.rank = rank.rank;
    facts.world_size = rank.world_size;
    facts.host = rank.host.c_str();
    facts.boot_id = "boot";
    facts.job = "7";
    return facts;
  }

  std::uint64_t number(const Slices& slices, std::size_t i, const char* key) const {
    return static_cast<std::uint64_t>(slices.number(i, trace_.names.find(key)).value_or(0));
  }

  bool is_mpi(const Slices& slices, std::size_t i) const {
    return trace_.names[trace_.kind_of(slices, i).domain] == "mpi";
  }

  void begin(std::int64_t ns, const Slices& slices, std::size_t i) {
    if (!is_mpi(slices, i)) return range(ns, EventType::push, slices, i);
    writer_.add(0, static_cast<std::uint64_t>(ns), EventType::mpi_begin_coll,
                allreduce | std::uint64_t{0xffffffff} << 16,
                {{number(slices, i, "bytes"), number(slices, i, "sequence") << 32}});
  }

  void end(std::int64_t ns, const Slices& slices, std::size_t i) {
    const auto ticks = static_cast<std::uint64_t>(ns);
    if (is_mpi(slices, i)) return writer_.add(0, ticks, EventType::mpi_end, allreduce);
    writer_.add(0, ticks, EventType::pop, writer_.domain(trace_.names[trace_.kind_of(slices, i).domain]));
  }

  // A push or a mark, with its payload if it has one.
  void range(std::int64_t ns, EventType type, const Slices& slices, std::size_t i) {
    const Kind& kind = trace_.kind_of(slices, i);
    const auto scope = writer_.scope(trace_.names[kind.name], trace_.names[kind.domain], trace_.names[kind.category]);
    const auto payload = slices.number(i, trace_.names.find("payload"));
    if (!payload) return writer_.add(0, static_cast<std::uint64_t>(ns), type, scope);
    writer_.add(0, static_cast<std::uint64_t>(ns),
                type == EventType::push ? EventType::push_payload : EventType::mark_payload, scope,
                {{static_cast<std::uint64_t>(format::PayloadType::floating), std::bit_cast<std::uint64_t>(*payload)}});
  }

  const Trace& trace_;
  const Rank& rank_;
  format::TraceWriter writer_;
  std::vector<Step> steps_;
};

class ReportOfATrace : public CommandTest {};

TEST_F(ReportOfATrace, HasTheFiguresOfTheSameTraceInMemory) {
  for (const int ranks : {1, 2}) {
    const Trace trace = make_trace({.ranks = ranks});
    const std::string name = "run" + std::to_string(ranks);
    fs::create_directories(directory_ / name);
    for (const Rank& rank : trace.ranks) {
      RankFile(trace, rank).write(directory_ / name / ("rank" + std::to_string(rank.rank) + ".pace"));
    }
    const Outcome outcome = paceline("report --format json " + name);
    ASSERT_EQ(outcome.status, 0) << outcome.errors;
    const json expected = json::parse(render_json(build_report({analyse_run(trace, name)})));
    const json found = json::parse(outcome.output);
    EXPECT_EQ(found["runs"], expected["runs"]) << json::diff(expected["runs"], found["runs"]).dump(2);
    EXPECT_EQ(found["findings"], expected["findings"]);
    EXPECT_EQ(found["headline"], expected["headline"]);
    EXPECT_EQ(found["runs"][0]["per_rank"][0]["phases"]["forward"], 240'000'000 / ranks);
  }
}

}  // namespace
}  // namespace paceline::analysis
