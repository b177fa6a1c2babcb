// SPDX-License-Identifier: Apache-2.0
#include "analysis/communication/link_rates.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <set>
#include <string_view>
#include <utility>

namespace paceline::analysis {
namespace link_rate_parts {

constexpr double bytes_per_gbit = 1e9 / 8;

// The number at the beginning of the text, or 0. The number is removed from the text.
double take_number(std::string_view& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || !(value > 0)) return 0;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

// "10000 Mbit/s, NUMA node 0" in bytes/s; 0 where the speed is not known.
double nic_rate(std::string_view fact) {
  const double mbit = take_number(fact);
  return fact.starts_with(" Mbit/s") ? mbit * 1e-3 * bytes_per_gbit : 0;
}

// "InfiniBand 200 Gb/sec (4X HDR), ACTIVE, NUMA node 0" in bytes/s; 0 for a port that is not active.
double port_rate(std::string_view fact) {
  const std::size_t at = fact.find_first_of("0123456789");
  if (at == std::string_view::npos || fact.find("ACTIVE") == std::string_view::npos) return 0;
  fact.remove_prefix(at);
  const double gbit = take_number(fact);
  return fact.starts_with(" Gb/sec") ? gbit * bytes_per_gbit : 0;
}

// The fastest adapter of a host, since that is the one that jobs are meant to use.
std::optional<LinkRate> fastest_adapter(const LinkEnd& end) {
  if (end.facts == nullptr) return std::nullopt;
  LinkRate fastest;
  for (const auto& [key, value] : *end.facts) {
    double rate = 0;
    if (key.starts_with("nic.")) rate = nic_rate(value);
    if (key.starts_with("hca.")) rate = port_rate(value);
    if (rate > fastest.bytes_per_s) fastest = {rate, key.substr(4) + " of " + end.host};
  }
  if (!(fastest.bytes_per_s > 0)) return std::nullopt;
  return fastest;
}

// Bytes/s of one NVLink, each way, by the GPU's name (NVIDIA's data sheets); 0 where it is not known.
double nvlink_rate(std::string_view gpu) {
  constexpr std::array<std::pair<std::string_view, double>, 9> rates{{{"P100", 20e9},
                                                                      {"V100", 25e9},
                                                                      {"A100", 25e9},
                                                                      {"A800", 25e9},
                                                                      {"H100", 25e9},
                                                                      {"H200", 25e9},
                                                                      {"GH200", 25e9},
                                                                      {"B200", 50e9},
                                                                      {"B300", 50e9}}};
  for (const auto& [name, rate] : rates) {
    if (gpu.find(name) != std::string_view::npos) return rate;
  }
  return 0;
}

// The slowest pair of GPUs of a host, where NVLink joins all of them.
std::optional<LinkRate> slowest_nvlink(const LinkEnd& end) {
  if (end.facts == nullptr) return std::nullopt;
  const auto gpu = end.facts->find("gpu.0");
  const double one = gpu == end.facts->end() ? 0 : nvlink_rate(gpu->second);
  std::optional<LinkRate> slowest;
  for (auto fact = end.facts->lower_bound("gpu_link."); fact != end.facts->end(); ++fact) {
    if (!fact->first.starts_with("gpu_link.")) break;
    std::string_view text = fact->second;
    const double rate = one * take_number(text);
    if (!(rate > 0) || !text.starts_with(" NVLinks")) return std::nullopt;
    if (!slowest || rate < slowest->bytes_per_s) {
      slowest = LinkRate{rate, fact->second.substr(0, fact->second.find(','))};
    }
  }
  return slowest;
}

}  // namespace link_rate_parts

bool on_several_hosts(std::span<const LinkEnd> members) {
  return std::ranges::any_of(members, [&](const LinkEnd& end) { return end.machine != members.front().machine; });
}

std::optional<LinkRate> rated_link(std::span<const LinkEnd> members, bool on_devices,
                                   std::optional<double> given_gbit) {
  using namespace link_rate_parts;
  if (members.size() < 2) return std::nullopt;
  if (given_gbit && *given_gbit > 0) return LinkRate{*given_gbit * bytes_per_gbit, "as given"};
  const bool network = on_several_hosts(members);
  if (!network && !on_devices) return std::nullopt;
  std::set<std::string_view> seen;
  std::optional<LinkRate> slowest;
  for (const LinkEnd& end : members) {
    if (!seen.insert(end.machine).second) continue;
    const auto rate = network ? fastest_adapter(end) : slowest_nvlink(end);
    if (!rate) return std::nullopt;
    if (!slowest || rate->bytes_per_s < slowest->bytes_per_s) slowest = rate;
  }
  return slowest;
}

}  // namespace paceline::analysis
