// SPDX-License-Identifier: Apache-2.0
#include "analysis/importers/kineto/own_ranks.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <map>

#include "analysis/importers/kineto/values.h"

namespace paceline::analysis::kineto {
namespace {

constexpr char mark = '\x1f';  // behind the name of the process, and behind its id; no label has it

// Takes the prefix off the text and returns the rank in it.
std::optional<RankName> take_own_rank(std::string& text) {
  const std::size_t middle = text.find(mark), end = middle == text.npos ? middle : text.find(mark, middle + 1);
  if (end == text.npos) return std::nullopt;
  auto name = rank_in_name(std::string_view(text).substr(0, middle));
  if (name) name->pid = whole_number(std::string_view(text).substr(middle + 1, end - middle - 1)).value_or(0);
  text.erase(0, end + 1);
  return name;
}

// What the rank has from its tracks alone.
void count_events(Rank& rank) {
  rank.nvtx_events = rank.cuda_events = rank.nccl_events = rank.counter_events = 0;
  bool any = false;
  const auto extend = [&](std::int64_t start_ns, std::int64_t end_ns) {
    rank.start_ns = any ? std::min(rank.start_ns, start_ns) : start_ns;
    rank.end_ns = any ? std::max(rank.end_ns, end_ns) : end_ns;
    any = true;
  };
  for (const Track& track : rank.tracks) {
    (track.kind == TrackKind::stream ? rank.cuda_events
     : track.kind == TrackKind::nccl ? rank.nccl_events
                                     : rank.nvtx_events) += track.slices.size();
    rank.counter_events += track.samples.time_ns.size();
    for (const Slices* slices : {&track.slices, &track.marks}) {
      for (std::size_t i = 0; i < slices->size(); ++i) extend(slices->start_ns[i], slices->end_ns(i));
    }
    for (const std::int64_t time_ns : track.samples.time_ns) extend(time_ns, time_ns);
  }
}

}  // namespace

std::optional<RankName> rank_in_name(std::string_view process_name) {
  const auto letter = [](char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; };
  const auto same = [](char a, char b) { return std::tolower(static_cast<unsigned char>(a)) == b; };
  constexpr std::string_view word_of_rank = "rank";
  const auto word = std::ranges::search(process_name, word_of_rank, same);
  if (word.empty() || (word.begin() != process_name.begin() && letter(*std::prev(word.begin())))) return std::nullopt;
  std::string_view rest(word.end(), process_name.end());
  if (const std::size_t gap = rest.find_first_not_of(" :#_-="); gap != rest.npos) rest.remove_prefix(gap);
  const std::size_t digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
  const auto number = whole_number(rest.substr(0, digits));
  if (!number || *number < 0 || *number > 100'000'000) return std::nullopt;
  std::string_view host = rest.substr(digits);
  if (!host.starts_with(" (") || !host.ends_with(')')) return RankName{static_cast<int>(*number), "", 0};
  return RankName{static_cast<int>(*number), std::string(host.substr(2, host.size() - 3)), 0};
}

std::string rank_prefix(const std::string& process_name, const std::string& process) {
  return rank_in_name(process_name) ? process_name + mark + process + mark : "";
}

void split_own_ranks(Rank rank, std::vector<Rank>& ranks) {
  std::map<RankName, std::vector<Track>> tracks;
  std::vector<Track> others;
  for (Track& track : rank.tracks) {
    const auto own = take_own_rank(track.label);
    take_own_rank(track.samples.device);
    if (track.kind == TrackKind::counter && track.samples.device.empty()) track.label = track.samples.name;
    (own ? tracks[*own] : others).push_back(std::move(track));
  }
  if (tracks.empty()) {
    rank.tracks = std::move(others);
    ranks.push_back(std::move(rank));
    return;
  }
  std::ranges::move(others, std::back_inserter(tracks.begin()->second));
  rank.tracks.clear();
  rank.world_size = std::max(rank.world_size, tracks.rbegin()->first.number + 1);
  const bool several = tracks.size() > 1;
  for (auto& [own, of_rank] : tracks) {
    Rank part = rank;
    part.rank = own.number;
    part.host = own.host;
    part.pid = own.pid;
    part.tracks = std::move(of_rank);
    if (several) count_events(part);
    ranks.push_back(std::move(part));
    rank.dropped.clear();  // of the whole file; they count once
  }
}

}  // namespace paceline::analysis::kineto
