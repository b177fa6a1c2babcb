// SPDX-License-Identifier: Apache-2.0
#include "analysis/importers/kineto/collectives.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "analysis/importers/kineto/values.h"
#include "analysis/text/lists.h"

namespace paceline::analysis::kineto {
namespace {

// "all_to_allv" and "alltoallv" alike.
std::string without_underscores(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c != '_') out.push_back(c);
  }
  return out;
}

std::vector<int> ranks_in(std::string_view list) {
  std::vector<int> ranks;
  for (std::size_t at = 0; at < list.size();) {
    const std::size_t end = std::min(list.find_first_of(",]", at), list.size());
    std::string_view word = list.substr(at, end - at);
    while (!word.empty() && (word.front() == '[' || word.front() == ' ')) word.remove_prefix(1);
    if (const auto rank = whole_number(word); rank && *rank >= 0 && *rank < 100'000'000) {
      ranks.push_back(static_cast<int>(*rank));
    }
    at = end + 1;
  }
  return ranks;
}

}  // namespace

bool Collective::take(std::string_view key, std::string_view value) {
  const auto count = [&](std::optional<std::uint64_t>& out) {
    if (const auto parsed = whole_number(value); parsed && *parsed >= 0) out = static_cast<std::uint64_t>(*parsed);
  };
  if (key == "Collective name") return name = plain_text(value), true;
  if (key == "dtype") return datatype = plain_text(value), true;
  if (key == "Process Group Name") return group = plain_text(value), true;
  if (key == "Process Group Description") return description = plain_text(value), true;
  if (key == "Process Group Ranks") return ranks = plain_text(value), true;
  if (key == "In msg nelems") return count(elements_in), true;
  if (key == "Out msg nelems") return count(elements_out), true;
  if (key == "Group size") return count(members), true;
  if (key == "Src Rank") return source = whole_number(value), true;
  if (key == "Dst Rank") return destination = whole_number(value), true;
  return key == "In split size" || key == "Out split size" || key == "Global rank start" ||
         key == "Global rank stride" || key == "Rank" || key == "Is asynchronized op";
}

std::optional<Operation> operation_of(std::string_view collective) {
  // The first one whose letters the name begins with; longer ones first.
  constexpr std::pair<std::string_view, std::string_view> table[] = {
      {"allreduce", "AllReduce"}, {"allgather", "AllGather"}, {"reducescatter", "ReduceScatter"},
      {"alltoall", "AlltoAll"},   {"broadcast", "Broadcast"}, {"reduce", "Reduce"},
      {"gather", "Gather"},       {"scatter", "Scatter"},     {"barrier", "AllReduce"},
      {"send", "Send"},           {"recv", "Recv"},           {"isend", "Send"},
      {"irecv", "Recv"},
  };
  const std::string name = without_underscores(collective);
  for (const auto& [begin, meaning] : table) {
    if (name.starts_with(begin)) return Operation{std::string(meaning), meaning == "Send" || meaning == "Recv"};
  }
  return std::nullopt;
}

Operation operation_of_kernel(std::string_view kernel) {
  std::size_t at = kernel.find("Kernel_");
  at = at == kernel.npos ? 0 : at + 7;
  const std::size_t end = std::min(kernel.find_first_of("_(<", at), kernel.size());
  std::string name(kernel.substr(at, end - at));
  const bool message = name == "SendRecv";
  return {std::move(name), message};
}

std::uint64_t element_bytes(std::string_view datatype) {
  constexpr std::pair<std::string_view, std::uint64_t> sizes[] = {
      {"Float", 4},        {"BFloat16", 2},       {"Half", 2},   {"Double", 8}, {"Long", 8},
      {"Int", 4},          {"Short", 2},          {"Char", 1},   {"Byte", 1},   {"Bool", 1},
      {"ComplexFloat", 8}, {"ComplexDouble", 16}, {"UInt16", 2}, {"UInt32", 4}, {"UInt64", 8},
  };
  for (const auto& [name, bytes] : sizes) {
    if (datatype == name) return bytes;
  }
  return datatype.starts_with("Float8") ? 1 : 0;
}

bool Collectives::wants_launches() const {
  return (!steps_.empty() || !ranges_.empty()) &&
         std::ranges::any_of(kernels_, [](const Call& call) { return !call.sequence && call.correlation != 0; });
}

// What the thread was in when it launched the kernel: "nccl:all_to_all". NCCL runs an all-to-all as sends and receives,
// so the kernel's own name does not say it.
std::optional<Operation> Collectives::operation_by_range(const Call& call) const {
  const auto launch = launches_.find(call.correlation);
  if (launch == launches_.end()) return std::nullopt;
  const auto [time_ns, thread] = launch->second;
  auto range = std::ranges::upper_bound(ranges_, time_ns, {}, &Range::start_ns);
  constexpr int most_steps = 64;  // back over the ranges of other threads
  for (int steps = 0; range != ranges_.begin() && steps < most_steps; ++steps) {
    --range;
    if (range->thread != thread) continue;
    const std::string_view text = rank_.names()[range->name];
    return range->end_ns < time_ns ? std::nullopt : kineto::operation_of(text.substr(text.find(':') + 1));
  }
  return std::nullopt;
}

Operation Collectives::operation_of(const Call& call) const {
  std::optional<Operation> operation;
  if (call.collective != nullptr) {
    operation = kineto::operation_of(call.collective->name);
  } else {
    operation = operation_by_range(call);
  }
  return operation ? *operation : operation_of_kernel(rank_.names()[call.kernel]);
}

// Before PyTorch 2.2 a kernel has no communicator. PyTorch has a stream for each, and makes the streams in the same
// order on all ranks.
void Collectives::add_stream_groups(const Header& header) {
  for (const Call& call : kernels_) {
    if (call.collective == nullptr) stream_groups_.try_emplace(call.stream);
  }
  std::size_t number = 0;
  const auto members = static_cast<std::uint32_t>(header.world_size.value_or(0));
  for (auto& [stream, group] : stream_groups_) {
    const std::string text = fmt::format("NCCL stream {}", ++number);
    group = {rank_.names().intern(text), members};
    rank_.add_communicator({group.text, name_identity(text), members});
  }
}

Collectives::Group Collectives::group_of(const Call& call, const Header& header, int own_rank) {
  if (call.collective != nullptr) return group_of(*call.collective, header, own_rank);
  const auto of_stream = stream_groups_.find(call.stream);
  return of_stream == stream_groups_.end() ? Group{} : of_stream->second;
}

// The text is the same on all members: PyTorch's name of the group, and the ranks unless it is the whole world.
Collectives::Group Collectives::group_of(const Collective& collective, const Header& header, int own_rank) {
  if (collective.group.empty() && collective.ranks.empty()) return {};
  const std::string key = collective.group + '\n' + collective.ranks;
  const auto [found, fresh] = groups_.try_emplace(key);
  if (!fresh) return found->second;
  std::vector<int> ranks = ranks_in(collective.ranks);
  std::string description = collective.description;
  std::uint32_t members = static_cast<std::uint32_t>(std::min<std::uint64_t>(collective.members.value_or(0), 1u << 30));
  for (const Header::Group& group : header.groups) {
    if (group.name != collective.group) continue;
    if (description.empty()) description = group.description;
    if (group.ranks.size() > ranks.size()) ranks = group.ranks;
    if (members == 0) members = group.size;
  }
  if (members == 0) members = static_cast<std::uint32_t>(ranks.size());
  std::string text = description.empty() || description == "undefined"
                         ? "group " + collective.group
                         : description + " (group " + collective.group + ")";
  const bool complete = ranks.size() == members && members > 0;
  const bool whole_world = header.world_size && members == static_cast<std::uint32_t>(*header.world_size);
  std::string identity = text;
  if (!whole_world) {
    for (const int rank : ranks) identity += fmt::format(",{}", rank);
    std::set<unsigned> numbers;
    for (const int rank : ranks) numbers.insert(static_cast<unsigned>(rank));
    const std::string list = cpu_list(numbers);
    if (!ranks.empty() && list.size() <= 40) {
      text += fmt::format(" of {} {}", ranks.size() == 1 ? "rank" : "ranks", list);
    } else if (!ranks.empty()) {
      text += fmt::format(" of {} ranks, {:016x}", members, name_identity(identity));
    }
  }
  const auto own = std::ranges::find(ranks, own_rank);
  found->second = {rank_.names().intern(text), members};
  rank_.add_communicator({found->second.text, name_identity(identity), members},
                         complete && own != ranks.end() ? static_cast<std::int32_t>(own - ranks.begin()) : -1);
  return found->second;
}

// The iteration of the profiler in which the call was made.
const Collectives::Step* Collectives::step_of(const Call& call) const {
  const auto launch = launches_.find(call.correlation);
  const std::int64_t at = launch != launches_.end() ? launch->second.time_ns : call.start_ns;
  const auto behind = std::ranges::upper_bound(steps_, at, {}, &Step::start_ns);
  if (behind == steps_.begin() || std::prev(behind)->end_ns < at) return nullptr;
  return &*std::prev(behind);
}

// Without the file's numbers: the ordinal of the call among those of its operation in the same iteration, which has the
// same number on all ranks. On a stream without a known communicator the number of these calls is a part of it: ranks
// that disagree on it do not match.
std::optional<std::uint64_t> Collectives::number(const Call& call, NameId communicator, const std::string& operation) {
  if (call.sequence) return call.sequence;
  const Step* step = step_of(call);
  if (step == nullptr) return std::nullopt;
  const std::tuple key(communicator, operation, step->number);
  const std::uint64_t ordinal = counts_[key]++;
  const auto total = totals_.find(key);
  const std::uint64_t of_iteration = total == totals_.end() ? 0 : total->second;
  return (static_cast<std::uint64_t>(step->number) << 40) + (of_iteration << 20) + ordinal;
}

void Collectives::add(const Call& call, const Header& header, int own_rank, bool of_kernel) {
  Names& names = rank_.names();
  if (!of_kernel && !kineto::operation_of(call.collective->name)) return;
  const Operation operation = operation_of(call);
  const Group group = group_of(call, header, own_rank);
  const std::string backend = of_kernel ? "nccl" : header.backend.empty() ? "gloo" : header.backend;
  TrackBuilder*& track = tracks_[group.text];
  if (track == nullptr) {
    std::string label = names[group.text];
    if (const std::string title = of_kernel ? "NCCL" : backend; !label.starts_with(title)) {
      label = label.empty() ? title : title + " " + label;
    }
    track = &rank_.add_track(TrackKind::nccl, label);
  }
  const std::string name = of_kernel ? "nccl" + operation.name : backend + ":" + operation.name;
  const std::uint32_t slice =
      track->add_slice(call.start_ns, call.end_ns, name, backend, operation.message ? "point-to-point" : "collective");
  if (group.text != 0) track->text_argument(slice, names.intern("communicator"), group.text);
  if (group.members != 0) track->argument(slice, names.intern("members"), group.members);
  if (call.collective != nullptr) {
    const Collective& collective = *call.collective;
    const std::uint64_t bytes_each = element_bytes(collective.datatype);
    const auto elements = std::max(collective.elements_in, collective.elements_out);
    // The larger side is the whole array for the calls with a part for each rank, as nccl-tests count.
    if (elements && bytes_each != 0 && *elements < 1ull << 59) {
      track->argument(slice, names.intern("bytes"), *elements * bytes_each);
    }
    if (!collective.datatype.empty()) {
      track->text_argument(slice, names.intern("datatype"), names.intern(collective.datatype));
    }
    if (operation.message) {
      const auto peer = operation.name == "Send" ? collective.destination : collective.source;
      if (peer && *peer >= 0) track->argument(slice, names.intern("peer"), *peer);
    }
  }
  if (operation.message) return;
  const auto sequence = group.text != 0 ? number(call, group.text, operation.name) : std::nullopt;
  if (sequence) track->varying_argument(slice, names.intern("sequence"), *sequence);
  if (!sequence) ++unnumbered_;
}

// A backend without kernels works in threads of its own, in the order of the calls.
void Collectives::place_operators() {
  const auto plain = [&](NameId name) {  // "gloo:all_reduce" -> "AllReduce"
    const std::string& text = rank_.names()[name];
    const auto operation = kineto::operation_of(std::string_view(text).substr(text.find(':') + 1));
    return operation ? operation->name : "";
  };
  std::map<std::string, std::vector<const Range*>> ranges;  // by operation
  for (const Range& range : ranges_) ranges[plain(range.name)].push_back(&range);
  std::map<std::string, std::size_t> next;
  for (Call& call : operators_) {
    const auto operation = kineto::operation_of(call.collective->name);
    if (!operation) continue;
    const std::vector<const Range*>& all = ranges[operation->name];
    std::size_t& at = next[operation->name];
    while (at < all.size() && all[at]->end_ns < call.start_ns) ++at;
    if (at == all.size()) continue;
    call.start_ns = std::max(all[at]->start_ns, call.start_ns);
    call.end_ns = all[at]->end_ns;
    ++at;
  }
}

void Collectives::finish(const Header& header, int own_rank) {
  std::ranges::stable_sort(steps_, {}, &Step::start_ns);
  std::ranges::stable_sort(kernels_, {}, &Call::start_ns);
  std::ranges::stable_sort(operators_, {}, &Call::start_ns);
  std::ranges::stable_sort(ranges_, {}, &Range::start_ns);
  add_stream_groups(header);
  for (const Call& call : kernels_) {
    if (call.collective != nullptr) continue;
    const Step* step = step_of(call);
    if (step != nullptr) ++totals_[{stream_groups_[call.stream].text, operation_of(call).name, step->number}];
  }
  for (const Call& call : kernels_) add(call, header, own_rank, true);
  rank_.info().nccl_events += kernels_.size();
  // With NCCL an operator only enqueues the kernel.
  if (!kernels_.empty() || header.backend.find("nccl") != std::string::npos) return;
  place_operators();
  for (const Call& call : operators_) add(call, header, own_rank, false);
  rank_.info().nccl_events += operators_.size();
}

}  // namespace paceline::analysis::kineto
