// SPDX-License-Identifier: Apache-2.0
#include "trainer/cli/value_checks.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <limits>
#include <optional>
#include <utility>

namespace paceline::train {
namespace {

constexpr int unnamed = 1'000'000;  // the help text omits bounds from here on

template <typename Number>
std::optional<Number> number_in(const std::string& text) {
  Number value{};
  const char* const end = text.data() + text.size();
  const auto [last, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && last == end ? std::optional(value) : std::nullopt;
}

}  // namespace

CLI::Validator whole(std::uint64_t least, std::uint64_t most) {
  return {[=](std::string& text) -> std::string {
            const auto value = number_in<std::uint64_t>(text);
            if (value && *value >= least && *value <= most) return {};
            return fmt::format("expected a whole number from {} to {}, got '{}'", least, most, text);
          },
          most < unnamed ? fmt::format("{} to {}", least, most) : fmt::format("at least {}", least)};
}

CLI::Validator number(double least, double most) {
  return {[=](std::string& text) -> std::string {
            const auto value = number_in<double>(text);
            if (value && *value >= least && *value <= most) return {};  // false for NaN
            return fmt::format("expected a number from {:g} to {:g}, got '{}'", least, most, text);
          },
          most < unnamed ? fmt::format("{:g} to {:g}", least, most) : fmt::format("at least {:g}", least)};
}

std::string type_name_of(const std::string& text) {
  if (text == "fp32") return "f32";
  return text == "fp16" ? "f16" : text;
}

CLI::Validator one_of(std::vector<std::string> texts) { return CLI::IsMember(std::move(texts)); }

CLI::Validator positive() {
  return {[](std::string& text) -> std::string {
            constexpr double most = std::numeric_limits<float>::max();
            const auto value = number_in<double>(text);
            if (value && *value > 0 && *value <= most) return {};
            return fmt::format("expected a number above 0, at most {:.3g}, got '{}'", most, text);
          },
          "above 0"};
}

}  // namespace paceline::train
