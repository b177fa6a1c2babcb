// SPDX-License-Identifier: Apache-2.0
#include "analysis/run/device_peak.h"

namespace paceline::analysis {
namespace device_peaks {

struct Device {
  std::string_view part;  // of the name
  double flops = 0;       // of 16-bit numbers on tensor cores, dense
  bool bf16 = true;
};
// NVIDIA's data sheets. The first part that a name contains decides.
constexpr Device devices[] = {
    {"B200", 2250e12},      {"H200", 989.4e12}, {"H100 PCIe", 756e12},        {"H100 80GB HBM3", 989.4e12},
    {"H100 SXM", 989.4e12}, {"A100", 312e12},   {"V100-SXM2", 125e12, false}, {"V100-PCIE", 112e12, false}};

}  // namespace device_peaks

std::optional<double> device_peak_flops(std::string_view gpu, std::string_view dtype) {
  const bool bf16 = dtype == "bf16" || dtype == "bfloat16",
             f16 = dtype == "f16" || dtype == "fp16" || dtype == "float16";
  for (const device_peaks::Device& device : device_peaks::devices) {
    if (gpu.find(device.part) == std::string_view::npos) continue;
    return f16 || (bf16 && device.bf16) ? std::optional(device.flops) : std::nullopt;
  }
  return std::nullopt;
}

std::optional<double> peak_flops_of(std::span<const RankSummary> ranks, std::string_view dtype) {
  std::optional<double> common;
  double sum = 0;
  for (const RankSummary& rank : ranks) {
    bool any = false;
    for (const auto& [key, value] : rank.facts) {
      if (!key.starts_with("gpu.")) continue;
      const auto peak = device_peak_flops(value, dtype);
      if (!peak || (common && *common != *peak)) return std::nullopt;
      common = peak;
      any = true;
    }
    if (!any || !rank.gpu) return std::nullopt;
    sum += *common;
  }
  return ranks.empty() ? std::nullopt : std::optional(sum);
}

}  // namespace paceline::analysis
