#include "analysis/graph/gradient_schedule.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace paceline::analysis {
namespace schedule_parts {

constexpr double first_bucket_bytes = 1048576;

bool is_gradient(const ReplayProgram& program, const ReplayItem& item) {
  return (item.what == ReplayItem::arrive || item.what == ReplayItem::complete) &&
         program.collectives[item.index].gradient;
}

// Helper threads that average gradients.
std::vector<bool> averaging_helpers(const ReplayProgram& program) {
  std::vector<bool> helpers;
  for (const ReplayTrack& track : program.tracks) {
    helpers.push_back(!track.main && std::ranges::any_of(track.items, [&](const ReplayItem& item) {
      return is_gradient(program, item);
    }));
  }
  return helpers;
}

// The bytes that one rank averages in an iteration: the median over those that average any.
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

// Takes the averaging of gradients out of the program.
class Removal {
 public:
  explicit Removal(ReplayProgram& program) : program_(program), helper_(averaging_helpers(program)) {}

  void run() {
    std::vector<bool> gone(program_.edges.size());
    for (std::size_t t = 0; t < program_.tracks.size(); ++t) {
      if (!helper_[t]) continue;
      for (const ReplayItem& item : program_.tracks[t].items) {
        if (item.what == ReplayItem::cause || item.what == ReplayItem::wait) gone[item.index] = true;
        if (item.what == ReplayItem::arrive) program_.collectives[item.index].arrivals = 0;
      }
      program_.tracks[t].items.clear();
    }
    for (ReplayTrack& track : program_.tracks) {
      std::erase_if(track.items, [&](const ReplayItem& item) {
        const bool edge = item.what == ReplayItem::cause || item.what == ReplayItem::wait;
        return (edge && gone[item.index]) || is_gradient(program_, item);
      });
    }
    for (ReplayCollective& of : program_.collectives) {
      if (of.gradient) of.arrivals = 0;
    }
  }

 private:
  ReplayProgram& program_;
  const std::vector<bool> helper_;
};

// Puts the averaging of gradients into a program without it.
class Insertion {
 public:
  Insertion(ReplayProgram& program, const GradientPlan& plan, double bytes, ReplayCollective gradient,
            std::optional<ReplayCollective> meeting)
      : program_(program), plan_(plan), bytes_(bytes), gradient_(std::move(gradient)), meeting_(std::move(meeting)) {}

  void run() {
    add_buckets();
    const std::size_t tracks = program_.tracks.size();
    for (std::size_t t = 0; t < tracks; ++t) {
      if (program_.tracks[t].main) change(t);
    }
  }

 private:
  struct BucketPlan {
    double ready = 1;  // the part of backward
    std::uint32_t collective = 0;
    std::optional<std::uint32_t> meeting;
  };

  std::size_t iterations() const { return program_.iterations.size(); }

  // The buckets of each iteration, which all ranks share.
  void add_buckets() {
    double quantile = 0.5;
    for (std::size_t i = 0; i < iterations(); ++i) {
      auto& buckets = buckets_.emplace_back();
      const double all = bytes_ * plan_.bytes_factor;
      for (double done = 0; done < all;) {
        double size = all - done;
        if (plan_.schedule == GradientSchedule::overlap) {
          size = std::min(size, done == 0 ? std::min(first_bucket_bytes, plan_.bucket_bytes) : plan_.bucket_bytes);
        }
        done += size;
        BucketPlan bucket;
        if (plan_.schedule == GradientSchedule::overlap) bucket.ready = ready_at(std::min(done / all, 1.0));
        if (meeting_ && plan_.schedule != GradientSchedule::blocking) bucket.meeting = add(*meeting_, i, 0, quantile);
        bucket.collective = add(gradient_, i, size, quantile);
        buckets.push_back(bucket);
        quantile = quantile + 0.6180339887498949 - (quantile > 0.3819660112501051 ? 1 : 0);
      }
    }
  }

  std::uint32_t add(ReplayCollective of, std::size_t iteration, double bytes, double quantile) {
    of.bytes = static_cast<std::uint64_t>(bytes + 0.5);
    of.iteration = static_cast<std::int32_t>(iteration);
    of.arrivals = 0;
    of.shape.clear();
    of.quantile = quantile;
    program_.collectives.push_back(std::move(of));
    return static_cast<std::uint32_t>(program_.collectives.size() - 1);
  }

  double ready_at(double bytes) const {
    ReadyPoint before;
    for (const ReadyPoint& point : plan_.ready) {
      if (point.bytes >= bytes) {
        const double width = point.bytes - before.bytes;
        return width > 0 ? before.backward + (bytes - before.bytes) / width * (point.backward - before.backward)
                         : point.backward;
      }
      before = point;
    }
    return plan_.ready.empty() ? bytes : 1;
  }

  std::uint32_t add_edge(DependencyKind kind, std::int32_t iteration) {
    program_.edges.push_back({kind, 0, iteration, 0, 0.5});
    return static_cast<std::uint32_t>(program_.edges.size() - 1);
  }

  void meet(std::vector<ReplayItem>& items, std::uint32_t collective, std::int32_t iteration) {
    ++program_.collectives[collective].arrivals;
    items.push_back({.what = ReplayItem::arrive, .index = collective, .iteration = iteration});
    // The members of a new collective go on together.
    items.push_back({.what = ReplayItem::complete, .index = collective, .member = ~0U, .iteration = iteration});
  }

  void change(std::size_t t) {
    const std::vector<ReplayItem> old = std::move(program_.tracks[t].items);
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
    std::vector<std::size_t> sent(iterations(), 0);
    std::vector<double> done(iterations(), 0);
    std::optional<std::uint32_t> running;  // of double buffering: the end of the last iteration's averaging
    for (std::size_t k = 0; k < old.size(); ++k) {
      const ReplayItem& item = old[k];
      const std::int32_t iteration = item.iteration;
      if (iteration < 0) {
        items.push_back(item);
        continue;
      }
      const auto i = static_cast<std::size_t>(iteration);
      const bool splits =
          plan_.schedule == GradientSchedule::overlap && item.what == ReplayItem::work && item.phase == Phase::backward;
      if (splits) {
        split(item, i, backward[i], done[i], sent[i], items, helper);
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
          for (const BucketPlan& bucket : buckets_[i]) send(bucket, iteration, items, helper);
          running = add_edge(DependencyKind::helper, iteration);
          helper.push_back({.what = ReplayItem::cause, .index = *running, .iteration = iteration});
          break;
      }
    }
    program_.tracks[t].items = std::move(items);
    if (helper.empty()) return;
    ReplayTrack track;
    track.rank = program_.tracks[t].rank;
    track.items = std::move(helper);
    program_.tracks.push_back(std::move(track));
  }

  // Work of backward, cut where buckets become ready.
  void split(const ReplayItem& item, std::size_t i, double backward, double& done, std::size_t& sent,
             std::vector<ReplayItem>& items, std::vector<ReplayItem>& helper) {
    double left = item.ns;
    while (sent < buckets_[i].size() && buckets_[i][sent].ready * backward <= done + left) {
      const double part = std::max(buckets_[i][sent].ready * backward - done, 0.0);
      items.push_back(item);
      items.back().ns = part;
      done += part;
      left -= part;
      send(buckets_[i][sent++], item.iteration, items, helper);
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

  // The main thread waits for an edge, whose cause the helper sets now if it is given.
  static void wait_for(std::uint32_t edge, std::int32_t iteration, std::vector<ReplayItem>& items,
                       std::vector<ReplayItem>* helper) {
    if (helper != nullptr) helper->push_back({.what = ReplayItem::cause, .index = edge, .iteration = iteration});
    items.push_back({.what = ReplayItem::wait, .index = edge, .iteration = iteration});
  }

  ReplayProgram& program_;
  const GradientPlan& plan_;
  const double bytes_;               // of an iteration
  const ReplayCollective gradient_;  // what the new ones are like
  const std::optional<ReplayCollective> meeting_;
  std::vector<std::vector<BucketPlan>> buckets_;  // of each iteration
};

}  // namespace schedule_parts

std::optional<GradientSchedule> recorded_schedule(const ReplayProgram& program) {
  using namespace schedule_parts;
  const auto any = [&](const ReplayTrack& track) {
    return std::ranges::any_of(track.items, [&](const ReplayItem& item) { return is_gradient(program, item); });
  };
  const std::vector<bool> helpers = averaging_helpers(program);
  if (std::ranges::count(helpers, true) == 0) {
    return std::ranges::any_of(program.tracks, any) ? std::optional(GradientSchedule::blocking) : std::nullopt;
  }
  for (std::size_t t = 0; t < helpers.size(); ++t) {
    if (helpers[t] && program.tracks[t].stream) return std::nullopt;
  }
  // With double buffering one piece of work is announced for each iteration, at its end.
  const auto pieces = std::ranges::count_if(program.collectives, [](const auto& of) { return of.gradient; });
  const bool one_each = pieces <= static_cast<std::ptrdiff_t>(program.iterations.size()) + 1;
  const auto readiness = recorded_readiness(program);
  return one_each && readiness.empty() ? GradientSchedule::double_buffering : GradientSchedule::overlap;
}

std::vector<ReadyPoint> recorded_readiness(const ReplayProgram& program) {
  using namespace schedule_parts;
  const std::vector<bool> helpers = averaging_helpers(program);
  std::vector<bool> announces(program.edges.size());  // edges to the averaging helpers
  for (std::size_t t = 0; t < helpers.size(); ++t) {
    if (!helpers[t]) continue;
    for (const ReplayItem& item : program.tracks[t].items) {
      const bool announced = item.what == ReplayItem::wait && program.edges[item.index].bytes > 0;
      if (announced) announces[item.index] = true;
    }
  }
  std::map<std::size_t, std::pair<ReadyPoint, int>> sums;  // by the bucket's place in its iteration
  for (const ReplayTrack& track : program.tracks) {
    if (!track.main) continue;
    struct Seen {
      double backward = 0, bytes = 0;
      std::vector<ReadyPoint> points;
    };
    std::map<std::int32_t, Seen> of_iteration;
    for (const ReplayItem& item : track.items) {
      Seen& seen = of_iteration[item.iteration];
      if (item.what == ReplayItem::work && item.phase == Phase::backward) seen.backward += item.ns;
      if (item.what != ReplayItem::cause || !announces[item.index]) continue;
      seen.bytes += static_cast<double>(program.edges[item.index].bytes);
      seen.points.push_back({seen.bytes, seen.backward});
    }
    for (const auto& [iteration, seen] : of_iteration) {
      // In the first iteration buckets are made after backward.
      if (iteration < 1 || seen.points.empty() || seen.backward <= 0) continue;
      if (seen.points.front().backward >= seen.backward) continue;
      for (std::size_t k = 0; k < seen.points.size(); ++k) {
        auto& [sum, count] = sums[k];
        sum.bytes += seen.points[k].bytes / seen.bytes;
        sum.backward += seen.points[k].backward / seen.backward;
        ++count;
      }
    }
  }
  std::vector<ReadyPoint> ready;
  for (const auto& [place, sum] : sums) {
    ready.push_back({sum.first.bytes / sum.second, sum.first.backward / sum.second});
  }
  return ready;
}

ReplayProgram rescheduled(ReplayProgram program, const GradientPlan& plan) {
  using namespace schedule_parts;
  const double bytes = gradient_bytes(program);
  const auto gradient = std::ranges::find_if(program.collectives, [](const auto& of) { return of.gradient; });
  if (gradient == program.collectives.end()) return program;
  const ReplayCollective like = *gradient;
  std::optional<ReplayCollective> meeting;
  const std::vector<bool> helpers = averaging_helpers(program);
  for (std::size_t t = 0; t < helpers.size() && !meeting; ++t) {
    if (!helpers[t]) continue;
    for (const ReplayItem& item : program.tracks[t].items) {
      if (item.what != ReplayItem::arrive || program.collectives[item.index].gradient) continue;
      meeting = program.collectives[item.index];
      break;
    }
  }
  Removal(program).run();
  Insertion(program, plan, bytes, like, meeting).run();
  return program;
}

}  // namespace paceline::analysis
