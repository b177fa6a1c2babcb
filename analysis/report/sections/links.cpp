// SPDX-License-Identifier: Apache-2.0
// Links that carried much less than they are rated at, and collectives too small for a link.
#include "analysis/communication/collectives.h"
#include "analysis/report/sections.h"
#include "analysis/report/values.h"
#include "analysis/run/run_links.h"
#include "analysis/text/lists.h"

namespace paceline::analysis {
namespace links_section {

std::string gbit(double bytes_per_s) { return significant(8e-9 * bytes_per_s, 2) + " Gbit/s"; }

std::optional<LinkRate> rated(const RunAnalysis& run, const LinkUse& use) {
  const std::vector<LinkEnd> all = link_ends(run);
  std::vector<LinkEnd> members;
  for (const std::uint32_t rank : use.ranks) members.push_back(all[rank]);
  return rated_link(members, use.on_devices, run.config.number("link_gbit"));
}

std::string hosts_text(const LinkUse& use) {
  constexpr std::size_t most_named = 4;
  if (use.hosts.size() == 1) return "The links between the GPUs of " + use.hosts.front() + " carry";
  if (use.hosts.size() == 2) return fmt::format("The link between {} and {} carries", use.hosts[0], use.hosts[1]);
  if (use.hosts.size() > most_named) return fmt::format("The links between {} hosts carry", use.hosts.size());
  return fmt::format("The links between {} carry", list_text(use.hosts));
}

void link_finding(const RunAnalysis& run, const LinkUse& use, std::vector<Finding>& out) {
  const auto rate = rated(run, use);
  if (!is_slow(use, rate ? rate->bytes_per_s : 0)) return;
  std::string text =
      fmt::format("{} {}: the median {} {} of about {}, and nine of ten stayed below {}.", hosts_text(use),
                  gbit(use.bytes_per_s), use.messages ? "rate of" : "bus bandwidth of",
                  count(static_cast<double>(use.collectives)) + (use.messages ? " messages" : " collectives"),
                  bytes(static_cast<double>(use.bytes)), gbit(use.fastest_bytes_per_s));
  if (rate) {
    text += fmt::format(" Its rated speed is {} ({}), of which that is {}.", gbit(rate->bytes_per_s), rate->source,
                        percent(use.bytes_per_s / rate->bytes_per_s));
  } else {
    text +=
        " Its rated speed is not known (give it with --link-gbit), but networks of clusters carry 1 Gbit/s and more.";
  }
  text += " Check which interface the library uses, its negotiated speed, limits on its rate, and other traffic.";
  out.push_back({Severity::warning, std::move(text)});
}

std::string rank_text(const RunAnalysis& run, std::uint32_t index) {
  const RankSummary& rank = run.per_rank[index];
  return fmt::format("rank {}{}", rank.rank, rank.host.empty() ? "" : " on " + rank.host);
}

// Links that are slower than the others of their kind beyond chance.
void times_finding(const RunAnalysis& run, const LinkTimes& times, std::vector<Finding>& out) {
  constexpr std::size_t most_named = 4;
  std::string text;
  for (std::size_t i = 0; i < std::min(times.test.late.size(), most_named); ++i) {
    const LateRank& late = times.test.late[i];
    const RankLink& link = times.links[late.rank];
    text += fmt::format(
        "{}Messages from {} to {} take {} of an iteration, {} longer than the mean of the {} other "
        "links {} that carry as much. That costs {} of a step.",
        text.empty() ? "" : " ", rank_text(run, link.sender), rank_text(run, link.receiver),
        seconds(times.times[late.rank]), seconds(1e-9 * late.behind_ns), times.links.size() - 1,
        times.between_hosts ? "between hosts" : "within hosts", percent(late.share_of_step));
  }
  if (text.empty()) return;
  text += " That is beyond chance (tested like the lateness of ranks). Check these links and the ranks at their ends.";
  out.push_back({.severity = Severity::warning,
                 .text = std::move(text),
                 .cost_s = of_the_steps(run, times.test.late.front().share_of_step)});
}

const char* larger_calls_text(const SmallCollectives& small) {
  return small.are_buckets()
             ? "Send larger buckets (--bucket-mb of paceline-train, bucket_cap_mb of DistributedDataParallel)."
             : "Join them to fewer and larger calls; with FSDP, shard larger parts of the model together.";
}

void small_finding(const RunAnalysis& run, const SmallCollectives& small, std::vector<Finding>& out) {
  out.push_back(
      {.severity = Severity::warning,
       .text = fmt::format(
           "The collectives are too small: an iteration has {} of {} (median size {}), and each costs {} however "
           "small it is. That is {} of the collectives' transfers and at least {} of the step in 19 of 20 "
           "iterations{}.{} {}",
           count(small.calls), small.operation, bytes(static_cast<double>(small.median_bytes)),
           duration(small.fixed_ns), percent(small.share_of_communication), percent(small.share_of_step),
           small.exposed_share < small.share_of_step
               ? fmt::format("; at most {} of a step is not hidden beside computation", percent(small.exposed_share))
               : "",
           small.half_bytes > 0 ? fmt::format(" From {} on, sending the bytes takes longer than this fixed cost.",
                                              bytes(static_cast<double>(small.half_bytes)))
                                : "",
           larger_calls_text(small)),
       .cost_s = of_the_steps(run, small.most_lost())});
}

void findings(const RunAnalysis& run, std::vector<Finding>& out) {
  for (const LinkUse& use : run.link_uses) link_finding(run, use, out);
  for (const LinkTimes& times : run.link_times) times_finding(run, times, out);
  if (run.small_collectives) small_finding(run, *run.small_collectives, out);
}

void figures(const RunAnalysis& run, Json& out) {
  for (const LinkUse& use : run.link_uses) {
    const auto rate = rated(run, use);
    Json link = {{"hosts", use.hosts},
                 {"collectives", use.collectives},
                 {"bytes", use.bytes},
                 {"busbw_bytes_per_s", use.bytes_per_s},
                 {"fastest_busbw_bytes_per_s", use.fastest_bytes_per_s},
                 {"slow", is_slow(use, rate ? rate->bytes_per_s : 0)}};
    if (rate) link["rated_bytes_per_s"] = rate->bytes_per_s, link["rated_by"] = rate->source;
    if (use.messages) link["of_messages"] = true;
    out["links"].push_back(std::move(link));
  }
  for (const LinkTimes& times : run.link_times) {
    Json entry = {{"between_hosts", times.between_hosts},
                  {"links", times.links.size()},
                  {"iterations", times.test.iterations},
                  {"judged", times.test.judged},
                  {"slow_links", Json::array()}};
    for (const LateRank& late : times.test.late) {
      const RankLink& link = times.links[late.rank];
      entry["slow_links"].push_back({{"from", run.per_rank[link.sender].rank},
                                     {"to", run.per_rank[link.receiver].rank},
                                     {"seconds", times.times[late.rank]},
                                     {"longer_ns", late.behind_ns},
                                     {"share_of_step", late.share_of_step},
                                     {"p", late.p}});
    }
    out["link_times"].push_back(std::move(entry));
  }
  if (!run.small_collectives) return;
  const SmallCollectives& small = *run.small_collectives;
  out["small_collectives"] = {{"operation", small.operation},
                              {"calls_per_iteration", small.calls},
                              {"median_bytes", small.median_bytes},
                              {"fixed_ns", small.fixed_ns},
                              {"share_of_transfer", small.share_of_communication},
                              {"share_of_step", small.share_of_step}};
  if (small.half_bytes > 0) out["small_collectives"]["half_bytes"] = small.half_bytes;
  if (small.exposed_share < 1) out["small_collectives"]["exposed_share_of_step"] = small.exposed_share;
}

}  // namespace links_section

RunSection sections::links() { return {.findings = links_section::findings, .figures = links_section::figures}; }

}  // namespace paceline::analysis
