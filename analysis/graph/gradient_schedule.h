// SPDX-License-Identifier: Apache-2.0
// Changes when the gradients of an iteration are averaged: after backward, in buckets beside it, or during the next
// iteration.
#pragma once

#include <optional>
#include <vector>

#include "analysis/graph/core_sharing.h"
#include "analysis/graph/network_model.h"
#include "analysis/graph/replay_program.h"

namespace paceline::analysis {

enum class GradientSchedule : std::uint8_t { blocking, overlap, double_buffering };

// How much of backward is done when a part of the gradient's bytes is ready, both from 0 to 1; rising.
struct ReadyPoint {
  double bytes = 0, backward = 0;
};
struct Readiness {
  std::vector<ReadyPoint> points;  // empty: bytes become ready evenly over backward
  bool layers = false;             // the points are layers, which no bucket cuts; otherwise recorded buckets
};

struct GradientPlan {
  GradientSchedule schedule = GradientSchedule::blocking;
  double bytes_factor = 1;         // of the gradient's bytes to those recorded
  double bucket_bytes = 26214400;  // of overlap; the first bucket has 1 MiB at most, and there are 1,000 at most
  Readiness ready = {};
  CoreSharing cores = {};      // of the ranks and their helper threads; without `taken`, none are shared
  TransferCost transfer = {};  // of a bucket without computation beside it
};

// Which tracks compute gradients and which average them; indices into ReplayProgram::tracks.
struct GradientTracks {
  // Of each rank: the main thread, or the stream with most of backward where streams average gradients. Nothing where
  // neither exists.
  std::vector<std::optional<std::size_t>> compute;
  std::vector<std::size_t> averaging;  // helper threads and streams other than `compute`
  bool streams = false;                // streams average gradients
};
GradientTracks gradient_tracks(const ReplayProgram& program);

// Whether the item is the arrival at, or the completion of, a collective that averages gradients.
bool averages_gradient(const ReplayProgram& program, const ReplayItem& item);

// The bytes that one rank averages in an iteration: the median over those that average any; 0 where none do.
double gradient_bytes(const ReplayProgram& program);

// How the program averages its gradients. Nothing where it was seen to average none, or does so on streams of GPUs
// while no stream has work of backward, or where PyTorch averages them, which has buckets of its own making. On
// streams, double buffering cannot be told from blocking.
std::optional<GradientSchedule> recorded_schedule(const ReplayProgram& program);

// When the layers' gradients became ready, where the layers' ranges have their sizes; else when the buckets of a
// program with overlap did. Means over the ranks and iterations.
Readiness recorded_readiness(const ReplayProgram& program);

// The program with its gradients averaged in the other way. A bucket is preceded by the collective in which helper
// threads were seen to meet, if there was one.
ReplayProgram rescheduled(ReplayProgram program, const GradientPlan& plan);

}  // namespace paceline::analysis
