// SPDX-License-Identifier: Apache-2.0
#include "analysis/importers/nsys/nccl.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace paceline::analysis {
namespace nsys_nccl {

constexpr std::size_t longest_payload = 16 << 10;

bool communicates(std::string_view name) {
  constexpr std::string_view all[] = {"ncclAllReduce", "ncclAllGather", "ncclReduceScatter", "ncclBroadcast",
                                      "ncclReduce",    "ncclAlltoAll",  "ncclGather",        "ncclScatter",
                                      "ncclSend",      "ncclRecv"};
  return std::ranges::find(all, name) != std::end(all);
}

bool for_each_rank(std::string_view name) {
  constexpr std::string_view all[] = {"ncclAllGather", "ncclReduceScatter", "ncclAlltoAll", "ncclGather",
                                      "ncclScatter"};
  return std::ranges::find(all, name) != std::end(all);
}

bool rooted(std::string_view name) {
  constexpr std::string_view all[] = {"ncclBroadcast", "ncclReduce", "ncclGather", "ncclScatter"};
  return std::ranges::find(all, name) != std::end(all);
}

// The value of a key in an object, or in the objects of an array.
const nlohmann::json* find(const nlohmann::json& payload, const char* key) {
  if (payload.is_object()) {
    const auto found = payload.find(key);
    if (found != payload.end()) return &*found;
  }
  if (!payload.is_array()) return nullptr;
  for (const nlohmann::json& element : payload) {
    if (!element.is_object()) continue;
    const auto found = element.find(key);
    if (found != element.end()) return &*found;
  }
  return nullptr;
}

// A whole number, also as a text of decimal or hexadecimal digits.
std::optional<std::uint64_t> whole(const nlohmann::json& payload, const char* key) {
  const nlohmann::json* value = find(payload, key);
  if (value == nullptr) return std::nullopt;
  if (value->is_number_unsigned()) return value->get<std::uint64_t>();
  if (value->is_number_integer()) return static_cast<std::uint64_t>(value->get<std::int64_t>());
  if (!value->is_string()) return std::nullopt;
  const auto& text = value->get_ref<const std::string&>();
  char* end = nullptr;
  const std::uint64_t number = std::strtoull(text.c_str(), &end, 0);
  if (text.empty() || *end != '\0') return std::nullopt;
  return number;
}

}  // namespace nsys_nccl

void NsysNccl::add_kernel(std::string_view name, std::int64_t correlation, std::int64_t start_ns, std::int64_t end_ns) {
  if (name.find("nccl") != name.npos) kernels_[correlation] = {start_ns, end_ns};
}

void NsysNccl::add_call(std::uint64_t thread, std::int64_t start_ns, std::int64_t correlation) {
  if (kernels_.empty()) return;
  const auto kernel = kernels_.find(correlation);
  if (kernel == kernels_.end()) return;
  launches_[thread].push_back({start_ns, kernel->second});
  kernels_.erase(kernel);  // the driver's call inside the runtime's has the same correlation
}

void NsysNccl::add_range(std::uint64_t thread, std::int64_t start_ns, std::int64_t end_ns, std::string_view name,
                         std::string_view payload) {
  ++events_;
  if (!nsys_nccl::communicates(name)) return;
  Range range;
  range.thread = thread;
  range.called = {start_ns, end_ns};
  range.name = name;
  if (!payload.empty() && payload.size() <= nsys_nccl::longest_payload) {
    const nlohmann::json said = nlohmann::json::parse(payload, nullptr, false);
    if (const auto identity = nsys_nccl::whole(said, "NCCL communicator ID")) {
      range.identity = *identity;
      range.communicator = fmt::format("{:016x}", *identity);
    }
    range.bytes = nsys_nccl::whole(said, "Message size [bytes]").value_or(0);
    range.members = nsys_nccl::whole(said, "No. of ranks").value_or(0);
    const auto small = [&](const char* key) {
      const auto number = nsys_nccl::whole(said, key);
      return number && *number <= 0x7fff'ffff ? static_cast<std::int64_t>(*number) : -1;
    };
    range.root = small("Root");
    range.peer = small("Peer rank");
  }
  ranges_.push_back(std::move(range));
}

void NsysNccl::finish() {
  for (auto& [thread, launches] : launches_) std::ranges::sort(launches, {}, &Launch::time_ns);
  std::ranges::stable_sort(ranges_, {}, [](const Range& range) { return range.called.start_ns; });
  for (const Range& range : ranges_) add_operation(range);
}

void NsysNccl::add_operation(const Range& range) {
  Names& names = tracks_.names();
  TrackBuilder& track =
      tracks_.extra(TrackKind::nccl, range.communicator.empty() ? std::string("NCCL") : "NCCL " + range.communicator);
  const std::vector<Launch>& launches = launches_[range.thread];
  const auto first = std::ranges::lower_bound(launches, range.called.start_ns, {}, &Launch::time_ns);
  const auto last = std::ranges::upper_bound(launches, range.called.end_ns, {}, &Launch::time_ns);
  const bool timed = last - first == 1;
  const bool message = range.name == "ncclSend" || range.name == "ncclRecv";
  const Span ran = timed ? first->ran : range.called;
  const char* category = !timed ? "enqueue" : message ? "point-to-point" : "collective";
  const std::uint32_t slice = track.add_slice(ran.start_ns, ran.end_ns, range.name, "nccl", category);
  // As in nccl-tests: for calls with a part for each rank, the bytes of all parts.
  const bool parts = nsys_nccl::for_each_rank(range.name) && range.members > 0 && range.members <= 0x7fff'ffff;
  if (range.bytes > 0) track.argument(slice, names.intern("bytes"), parts ? range.bytes * range.members : range.bytes);
  if (!range.communicator.empty()) {
    const NameId text = names.intern(range.communicator);
    track.text_argument(slice, names.intern("communicator"), text);
    if (range.members > 0) track.argument(slice, names.intern("members"), range.members);
    if (!message) {
      track.varying_argument(slice, names.intern("sequence"), sequence_[{range.identity, range.name}]++);
    }
  }
  if (message && range.peer >= 0) track.argument(slice, names.intern("peer"), range.peer);
  if (nsys_nccl::rooted(range.name) && range.root >= 0) track.argument(slice, names.intern("root"), range.root);
  if (timed) track.varying_argument(slice, names.intern("enqueued_before"), ran.start_ns - range.called.start_ns);
}

}  // namespace paceline::analysis
