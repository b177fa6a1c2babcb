// SPDX-License-Identifier: Apache-2.0
#include "analysis/graph/gradient_schedule.h"

#include <algorithm>
#include <map>

namespace paceline::analysis {
namespace schedule_parts {

constexpr double first_bucket_bytes = 1048576, most_buckets = 1000;

// Takes the averaging of gradients out of the program. The tracks that compute keep their items, of which Insertion
// copies those that stay.
class Removal {
 public:
  // A helper thread only averages. A stream keeps its waits, which order other work.
  Removal(ReplayProgram& program, const GradientTracks& tracks) : program_(program), gone_(program.edges.size()) {
    for (const std::size_t t : tracks.averaging) {
      if (program.tracks[t].stream) continue;
      for (const ReplayItem& item : *program.tracks[t].items) {
        if (item.what == ReplayItem::cause || item.what == ReplayItem::wait) gone_[item.index] = true;
        if (item.what == ReplayItem::arrive) program.collectives[item.index].arrivals = 0;
      }
      program.tracks[t].items = {};
    }
    const auto removes_it = [&](const ReplayItem& item) { return removes(item); };
    for (std::size_t t = 0; t < program.tracks.size(); ++t) {
      ReplayTrack& track = program.tracks[t];
      if (tracks.compute[track.rank] == t || std::ranges::none_of(*track.items, removes_it)) continue;
      std::erase_if(track.items.own(), removes_it);
    }
    for (ReplayCollective& of : program.collectives) {
      if (of.gradient) of.arrivals = 0;
    }
  }

  bool removes(const ReplayItem& item) const {
    const bool edge = item.what == ReplayItem::cause || item.what == ReplayItem::wait;
    return (edge && item.index < gone_.size() && gone_[item.index]) || averages_gradient(program_, item);
  }

 private:
  const ReplayProgram& program_;
  std::vector<bool> gone_;  // of each recorded edge
};

// Puts another averaging of gradients into a program.
class Insertion {
 public:
  Insertion(ReplayProgram& program, const Removal& removal, const GradientPlan& plan, double bytes,
            ReplayCollective gradient, std::optional<ReplayCollective> meeting)
      : program_(program),
        removal_(removal),
        plan_(plan),
        bytes_(bytes),
        gradient_(std::move(gradient)),
        meeting_(std::move(meeting)) {}

  void run(const GradientTracks& tracks) {
    on_streams_ = tracks.streams;
    add_buckets(tracks);
    program_.edges.reserve(program_.edges.size() + tracks.compute.size() * iterations() * (bucket_count() + 1));
    for (const auto& track : tracks.compute) {
      if (track) change(*track);
    }
  }

 private:
  struct BucketPlan {
    double ready = 1;    // the part of backward
    double work_ns = 0;  // that the computing thread still has when its transfer begins
    double transfer_ns = 0, cpu_ns = 0;
    std::uint32_t collective = 0;
    std::optional<std::uint32_t> meeting;
  };

  std::size_t iterations() const { return program_.iterations.size(); }
  // All iterations have as many.
  std::size_t bucket_count() const { return buckets_.empty() ? 0 : buckets_.front().size(); }

  // The end of each bucket as a part of the gradient's bytes.
  std::vector<double> bucket_ends(double all) const {
    if (plan_.schedule != GradientSchedule::overlap) return {1};
    std::vector<double> ends;
    const auto limit = [&] {
      const double bytes = ends.empty() ? std::min(first_bucket_bytes, plan_.bucket_bytes) : plan_.bucket_bytes;
      return std::max(1 / most_buckets, bytes / all);  // a trace may state any size, or none that is a number
    };
    if (!plan_.ready.layers) {
      double end = 0;
      while (end < 1) ends.push_back(end = std::min(end + limit(), 1.0));
      return ends;
    }
    // A bucket takes layers until the next one would exceed its limit. A larger layer is a bucket of its own.
    double begin = 0, end = 0;
    for (const ReadyPoint& layer : plan_.ready.points) {
      if (end > begin && layer.bytes - begin > limit()) ends.push_back(begin = end);
      end = layer.bytes;
    }
    ends.push_back(1);
    return ends;
  }

  // Of the threads that compute gradients, in an iteration: backward alone, or all their work.
  double mean_work_ns(const GradientTracks& tracks, bool backward) const {
    double sum = 0, counted = 0;
    for (const auto& track : tracks.compute) {
      if (!track) continue;
      ++counted;
      for (const ReplayItem& item : *program_.tracks[*track].items) {
        if (item.what != ReplayItem::work || item.iteration < 0) continue;
        if (!backward || item.phase == Phase::backward) sum += item.ns;
      }
    }
    return sum / std::max(counted * static_cast<double>(iterations()), 1.0);
  }

  // The buckets of each iteration, which all ranks share.
  void add_buckets(const GradientTracks& tracks) {
    const double all = bytes_ * plan_.bytes_factor;
    const std::vector<double> ends = all > 0 ? bucket_ends(all) : std::vector<double>{};
    const bool overlaps = plan_.schedule == GradientSchedule::overlap;
    const double work_ns = mean_work_ns(tracks, overlaps);
    const double taken = on_streams_ ? 0 : plan_.cores.most_taken();
    const TransferCost cpu = plan_.cores.helper_cost(plan_.transfer);
    double quantile = 0.5;
    for (std::size_t i = 0; i < iterations(); ++i) {
      auto& buckets = buckets_.emplace_back();
      double begin = 0, busy_until_ns = 0;
      for (const double end : ends) {
        const double bytes = (end - begin) * all;
        BucketPlan bucket;
        bucket.transfer_ns = plan_.transfer.of(bytes), bucket.cpu_ns = cpu.of(bytes);
        double longer_ns = 0;
        if (plan_.schedule != GradientSchedule::blocking) {
          if (overlaps) bucket.ready = ready_at(end);
          const double starts_ns = overlaps ? std::max(busy_until_ns, bucket.ready * work_ns) : 0;
          bucket.work_ns = std::max(work_ns - starts_ns, 0.0);
          if (bucket.work_ns > 0) {
            longer_ns = beside_work(bucket.work_ns, bucket.transfer_ns, bucket.cpu_ns, taken).longer_ns +
                        (overlaps ? helper_delay_ns * taken : 0);
          }
          busy_until_ns = starts_ns + longer_ns + bucket.transfer_ns;
          if (meeting_) bucket.meeting = add(*meeting_, i, 0, quantile);
        }
        bucket.collective = add(gradient_, i, bytes, quantile);
        program_.collectives[bucket.collective].extra_ns = longer_ns;
        begin = end;
        buckets.push_back(bucket);
        quantile = quantile + 0.6180339887498949 - (quantile > 0.3819660112501051 ? 1 : 0);
      }
    }
  }

  std::uint32_t add(ReplayCollective of, std::size_t iteration, double bytes, double quantile) {
    of.bytes = static_cast<std::uint64_t>(bytes + 0.5);
    of.iteration = static_cast<std::int32_t>(iteration);
    of.arrivals = 0;
    of.shape = nullptr;
    of.quantile = quantile;
    of.rescheduled = true;
    program_.collectives.push_back(std::move(of));
    return static_cast<std::uint32_t>(program_.collectives.size() - 1);
  }

  double ready_at(double bytes) const {
    ReadyPoint before;
    for (const ReadyPoint& point : plan_.ready.points) {
      if (point.bytes >= bytes) {
        const double width = point.bytes - before.bytes;
        return width > 0 ? before.backward + (bytes - before.bytes) / width * (point.backward - before.backward)
                         : point.backward;
      }
      before = point;
    }
    return plan_.ready.points.empty() ? bytes : 1;
  }

  // Streams wait for each other by events.
  std::uint32_t add_edge(DependencyKind kind, std::int32_t iteration) {
    if (on_streams_) kind = DependencyKind::stream;
    program_.edges.push_back({.kind = kind, .iteration = iteration});
    return static_cast<std::uint32_t>(program_.edges.size() - 1);
  }

  void meet(std::vector<ReplayItem>& items, std::uint32_t collective, std::int32_t iteration) {
    ++program_.collectives[collective].arrivals;
    items.push_back({.what = ReplayItem::arrive, .index = collective, .iteration = iteration});
    // The members of a new collective go on together.
    items.push_back({.what = ReplayItem::complete, .index = collective, .member = ~0U, .iteration = iteration});
  }

  void change(std::size_t t) {
    const Shared<std::vector<ReplayItem>> recorded = program_.tracks[t].items;
    const std::vector<ReplayItem>& old = *recorded;
    // Of each iteration: where backward ends, else forward; and how long backward takes.
    std::vector<std::size_t> anchor(iterations(), old.size());
    std::vector<double> backward(iterations(), 0);
    for (std::size_t k = 0; k < old.size(); ++k) {
      if (old[k].what != ReplayItem::work || old[k].iteration < 0) continue;
      const auto i = static_cast<std::size_t>(old[k].iteration);
      if (old[k].phase == Phase::backward) backward[i] += old[k].ns;
      const bool forward_alone = old[k].phase == Phase::forward && backward[i] == 0;
      if (old[k].phase == Phase::backward || forward_alone) anchor[i] = k;
    }
    std::vector<ReplayItem> items, helper;
    // For each bucket: an item that sends it, one that it splits, and one for the time without a core; in the helper,
    // one that takes it and two in each collective.
    items.reserve(old.size() + iterations() * (3 * bucket_count() + 1));
    if (plan_.schedule != GradientSchedule::blocking) helper.reserve(iterations() * (5 * bucket_count() + 1));
    std::vector<std::size_t> sent(iterations(), 0);
    std::vector<double> done(iterations(), 0);
    std::optional<std::uint32_t> running;  // of double buffering: the end of the last iteration's averaging
    for (std::size_t k = 0; k < old.size(); ++k) {
      const ReplayItem& item = old[k];
      if (removal_.removes(item)) continue;
      const std::int32_t iteration = item.iteration;
      if (iteration < 0) {
        items.push_back(item);
        continue;
      }
      const auto i = static_cast<std::size_t>(iteration);
      const bool splits =
          plan_.schedule == GradientSchedule::overlap && item.what == ReplayItem::work && item.phase == Phase::backward;
      if (splits) {
        split(item, program_.tracks[t].rank, i, backward[i], done[i], sent[i], items, helper);
      } else {
        items.push_back(item);
      }
      if (k != anchor[i] || buckets_[i].empty()) continue;
      switch (plan_.schedule) {
        case GradientSchedule::blocking:
          for (const BucketPlan& bucket : buckets_[i]) meet(items, bucket.collective, iteration);
          break;
        case GradientSchedule::overlap:
          while (sent[i] < buckets_[i].size()) send(buckets_[i][sent[i]++], iteration, items, helper);
          wait_for(add_edge(DependencyKind::helper, iteration), iteration, items, &helper);
          break;
        case GradientSchedule::double_buffering:
          if (running) wait_for(*running, iteration, items, nullptr);
          for (const BucketPlan& bucket : buckets_[i]) {
            send(bucket, iteration, items, helper);
            lose_core(bucket, iteration, program_.tracks[t].rank, items);
          }
          running = add_edge(DependencyKind::helper, iteration);
          helper.push_back({.what = ReplayItem::cause, .index = *running, .iteration = iteration});
          break;
      }
    }
    program_.tracks[t].items = Shared(std::move(items));
    if (helper.empty()) return;
    ReplayTrack track;
    track.rank = program_.tracks[t].rank;
    track.stream = on_streams_;
    track.items = Shared(std::move(helper));
    program_.tracks.push_back(std::move(track));
  }

  // Work of backward, cut where buckets become ready.
  void split(const ReplayItem& item, std::uint32_t rank, std::size_t i, double backward, double& done,
             std::size_t& sent, std::vector<ReplayItem>& items, std::vector<ReplayItem>& helper) {
    double left = item.ns;
    while (sent < buckets_[i].size() && buckets_[i][sent].ready * backward <= done + left) {
      const double part = std::max(buckets_[i][sent].ready * backward - done, 0.0);
      items.push_back(item);
      items.back().ns = part;
      done += part;
      left -= part;
      send(buckets_[i][sent], item.iteration, items, helper);
      if (done < (1 - 1e-9) * backward) lose_core(buckets_[i][sent], item.iteration, rank, items);
      ++sent;
    }
    items.push_back(item);
    items.back().ns = left;
    done += left;
  }

  void send(const BucketPlan& bucket, std::int32_t iteration, std::vector<ReplayItem>& items,
            std::vector<ReplayItem>& helper) {
    const std::uint32_t edge = add_edge(DependencyKind::hand_over, iteration);
    items.push_back({.what = ReplayItem::cause, .index = edge, .iteration = iteration});
    helper.push_back({.what = ReplayItem::wait, .index = edge, .iteration = iteration});
    if (bucket.meeting) meet(helper, *bucket.meeting, iteration);
    meet(helper, bucket.collective, iteration);
  }

  // The computing thread goes without its core while the helper thread works on the bucket.
  void lose_core(const BucketPlan& bucket, std::int32_t iteration, std::uint32_t rank, std::vector<ReplayItem>& items) {
    if (on_streams_ || rank >= plan_.cores.taken.size()) return;
    const double ns = beside_work(bucket.work_ns, bucket.transfer_ns, bucket.cpu_ns, plan_.cores.taken[rank]).lost_ns;
    items.push_back({.what = ReplayItem::work, .phase = Phase::communication, .iteration = iteration, .ns = ns});
  }

  // The main thread waits for an edge, whose cause the helper sets now if it is given.
  static void wait_for(std::uint32_t edge, std::int32_t iteration, std::vector<ReplayItem>& items,
                       std::vector<ReplayItem>* helper) {
    if (helper != nullptr) helper->push_back({.what = ReplayItem::cause, .index = edge, .iteration = iteration});
    items.push_back({.what = ReplayItem::wait, .index = edge, .iteration = iteration});
  }

  ReplayProgram& program_;
  const Removal& removal_;
  const GradientPlan& plan_;
  const double bytes_;               // of an iteration
  const ReplayCollective gradient_;  // what the new ones are like
  const std::optional<ReplayCollective> meeting_;
  bool on_streams_ = false;
  std::vector<std::vector<BucketPlan>> buckets_;  // of each iteration
};

}  // namespace schedule_parts

double gradient_bytes(const ReplayProgram& program) {
  std::map<std::int32_t, double> bytes;
  for (const ReplayCollective& of : program.collectives) {
    if (of.gradient && of.arrivals > 0) bytes[of.iteration] += static_cast<double>(of.bytes);
  }
  std::vector<double> sorted;
  for (const auto& [iteration, sum] : bytes) sorted.push_back(sum);
  std::ranges::sort(sorted);
  return sorted.empty() ? 0 : sorted[sorted.size() / 2];
}

ReplayProgram rescheduled(ReplayProgram program, const GradientPlan& plan) {
  using namespace schedule_parts;
  const double bytes = gradient_bytes(program);
  const auto gradient = std::ranges::find_if(program.collectives, [](const auto& of) { return of.gradient; });
  if (gradient == program.collectives.end()) return program;
  const ReplayCollective like = *gradient;
  const GradientTracks tracks = gradient_tracks(program);
  std::optional<ReplayCollective> meeting;
  for (const std::size_t t : tracks.averaging) {
    if (meeting || tracks.streams) break;
    for (const ReplayItem& item : *program.tracks[t].items) {
      if (item.what != ReplayItem::arrive || program.collectives[item.index].gradient) continue;
      meeting = program.collectives[item.index];
      break;
    }
  }
  const Removal removal(program, tracks);
  Insertion(program, removal, plan, bytes, like, meeting).run(tracks);
  return program;
}

}  // namespace paceline::analysis
