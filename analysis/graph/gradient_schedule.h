// Changes when the gradients of an iteration are averaged: after backward, in buckets beside it, or during the next
// iteration.
#pragma once

#include <optional>
#include <vector>

#include "analysis/graph/replay_program.h"

namespace paceline::analysis {

enum class GradientSchedule : std::uint8_t { blocking, overlap, double_buffering };

// How much of backward is done when a part of the gradient's bytes is ready, both from 0 to 1; rising.
struct ReadyPoint {
  double bytes = 0, backward = 0;
};

struct GradientPlan {
  GradientSchedule schedule = GradientSchedule::blocking;
  double bytes_factor = 1;         // of the gradient's bytes to those recorded
  double bucket_bytes = 26214400;  // of overlap; the first bucket has 1 MiB at most
  std::vector<ReadyPoint> ready;   // empty: bytes become ready evenly over backward
};

// How the program averages its gradients. Nothing where it was seen to average none, or does so on streams of GPUs,
// which cannot be rearranged here.
std::optional<GradientSchedule> recorded_schedule(const ReplayProgram& program);

// When the buckets of a program with overlap became ready. Empty where it has no overlap or announces no buckets.
std::vector<ReadyPoint> recorded_readiness(const ReplayProgram& program);

// The program with its gradients averaged in the other way. A bucket is preceded by the collective in which helper
// threads were seen to meet, if there was one.
ReplayProgram rescheduled(ReplayProgram program, const GradientPlan& plan);

}  // namespace paceline::analysis
