// SPDX-License-Identifier: Apache-2.0
// Hand-made pipelines of two stages with two microbatches.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "analysis/trace/builder.h"

namespace paceline::analysis {

struct StageTask {
  char kind;  // F or B
  int microbatch;
  std::int64_t start, end;  // ms from the iteration's start
};

struct PipelineJob {
  std::vector<StageTask> first, second;  // the work of each stage
  std::int64_t length = 0;               // ms from the first forward to the last backward; an iteration has 20 more
  bool described = true;
  std::vector<std::pair<std::string, int>> parts = {};  // first layer and cost
  std::string split = {};
};

// GPipe. Stage 0 takes 10 and 20 ms for a microbatch, stage 1 takes 15 and 30 ms.
inline PipelineJob usual_pipeline() {
  return {.first = {{'F', 0, 0, 10}, {'F', 1, 10, 20}, {'B', 0, 70, 90}, {'B', 1, 100, 120}},
          .second = {{'F', 0, 10, 25}, {'F', 1, 25, 40}, {'B', 0, 40, 70}, {'B', 1, 70, 100}},
          .length = 120};
}

inline void add_pipeline_iteration(TrackBuilder& main, int stage, std::int64_t start, int number,
                                   const std::vector<StageTask>& work, std::int64_t length) {
  const auto at = [start](std::int64_t time) { return (start + time) * 1'000'000; };
  main.push(at(0), "iteration", "paceline.trainer", "iteration");
  main.argument("payload", number);
  main.push(at(0), "stage " + std::to_string(stage), "paceline.trainer", "stage");
  main.argument("payload", stage);
  for (const StageTask& one : work) {
    main.push(at(one.start), "microbatch", "paceline.trainer", "microbatch");
    main.argument("payload", one.microbatch);
    const char* const name = one.kind == 'F' ? "forward" : "backward";
    main.push(at(one.start), name, "paceline.trainer", name);
    main.pop(at(one.end));
    main.pop(at(one.end));
  }
  main.pop(at(length));
  main.pop(at(length + 20));
}

// Iterations of the job; those in `other` are replaced.
inline Trace pipeline_trace(const PipelineJob& job, int iterations = 5,
                            const std::vector<std::pair<int, PipelineJob>>& other = {}) {
  TraceBuilder run;
  for (const int stage : {0, 1}) {
    RankBuilder& rank = run.add_rank(stage, 2);
    TrackBuilder& main = rank.add_main_thread();
    if (job.described) {
      const std::string description = R"({"batch_per_rank": 4, "pipeline_stages": 2, "microbatches": 2,)"
                                      R"("pipeline_schedule": "gpipe", "pipeline_split": ")" +
                                      job.split + "\"}";
      main.add_mark(0, description, "paceline.trainer", "run");
    }
    for (const auto& [layer, cost] : job.parts) {
      main.mark_argument(main.add_mark(0, layer, "paceline.trainer", "part"), "payload", cost);
    }
    std::int64_t start = 0;
    for (int i = 0; i < iterations; ++i) {
      const PipelineJob* of = &job;
      for (const auto& [number, instead] : other) of = number == i ? &instead : of;
      add_pipeline_iteration(main, stage, start, i, stage == 0 ? of->first : of->second, of->length);
      start += of->length + 20;
    }
  }
  return run.finish();
}

}  // namespace paceline::analysis
