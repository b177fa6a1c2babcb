// SPDX-License-Identifier: Apache-2.0
#include "trainer/backend/cuda/plan_cache.h"

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <exception>
#include <system_error>
#include <thread>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include "trainer/core/whole_file.h"

namespace paceline::train::cuda {
namespace {

constexpr std::string_view first_line = "paceline-cudnn-plans 1\n";
constexpr std::size_t largest_file = std::size_t{8} << 20, most_knobs = 64;

// Takes the text before the separator; nothing if the separator does not occur.
std::optional<std::string_view> take_until(std::string_view& rest, char separator) {
  const std::size_t at = rest.find(separator);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view taken = rest.substr(0, at);
  rest.remove_prefix(at + 1);
  return taken;
}

template <class Number>
bool read_number(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

// "26=128,27=64", or nothing at all.
bool read_knobs(std::string_view text, std::map<std::int64_t, std::int64_t>& knobs) {
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    std::string_view knob = text.substr(0, comma);
    text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
    std::int64_t type = 0, value = 0;
    const auto name = take_until(knob, '=');
    if (!name || !read_number(*name, type) || !read_number(knob, value)) return false;
    if (type < 0 || knobs.size() == most_knobs || !knobs.emplace(type, value).second) return false;
    if (comma != std::string_view::npos && text.empty()) return false;
  }
  return true;
}

}  // namespace

std::string text_of(const PlanKey& key, const PlanPlace& place) {
  constexpr const char* directions[] = {"forward",
                                        "data_gradient",
                                        "weight_gradient",
                                        "forward + sums",
                                        "norm + relu + forward + sums",
                                        "norm + relu + weight_gradient",
                                        "data_gradient + relu + norm"};
  std::string gpu = place.gpu;
  for (char& c : gpu) {
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  }
  return fmt::format("{}, {} SMs; cuDNN {}; {} {}{}; n{} c{} h{} w{}; k{} r{} s{} p{}", gpu, place.multiprocessors,
                     place.cudnn, directions[static_cast<int>(key.direction)], name_of(key.precision),
                     key.winograd ? " winograd" : "", key.batch, key.channels, key.height, key.width, key.filters,
                     key.kernel, key.stride, key.padding);
}

std::string PlanCache::print(const Plans& plans) {
  std::string content(first_line);
  for (const auto& [key, plan] : plans) {
    content += fmt::format("{}\t{}\t{}\t", key, plan.index, plan.engine);
    const char* separator = "";
    for (const auto& [type, value] : plan.knobs) {
      content += fmt::format("{}{}={}", separator, type, value);
      separator = ",";
    }
    content += fmt::format("\t{:.3f}\n", plan.microseconds);
  }
  return content;
}

std::optional<PlanCache::Plans> PlanCache::parse(std::string_view content) {
  if (!content.starts_with(first_line)) return std::nullopt;
  content.remove_prefix(first_line.size());
  Plans plans;
  while (!content.empty()) {
    auto line = take_until(content, '\n');
    if (!line) return std::nullopt;  // cut off
    const auto key = take_until(*line, '\t'), index = take_until(*line, '\t'), engine = take_until(*line, '\t'),
               knobs = take_until(*line, '\t');
    Plan plan;
    if (!knobs || key->empty()) return std::nullopt;
    if (!read_number(*index, plan.index) || plan.index < 0) return std::nullopt;
    if (!read_number(*engine, plan.engine) || plan.engine < 0) return std::nullopt;
    if (!read_knobs(*knobs, plan.knobs) || !read_number(*line, plan.microseconds)) return std::nullopt;
    if (!(plan.microseconds >= 0)) return std::nullopt;
    plans[std::string(*key)] = plan;
  }
  return plans;
}

PlanCache::PlanCache(std::filesystem::path file, std::chrono::milliseconds patience)
    : file_(std::move(file)), patience_(patience), plans_(read()) {}

PlanCache::Plans PlanCache::read() {
  std::error_code error;
  if (file_.empty() || !std::filesystem::exists(file_, error)) return {};
  try {
    if (!std::filesystem::is_regular_file(file_) || std::filesystem::file_size(file_) > largest_file) {
      trouble_ =
          fmt::format("{}: not a file of cuDNN plans; remove it, or name another with ‹plan-cache›", file_.string());
      return {};
    }
    if (auto plans = parse(read_file(file_))) return *std::move(plans);
    trouble_ = fmt::format("{}: damaged, and will be written anew", file_.string());
  } catch (const std::exception& failure) {
    trouble_ = failure.what();
  }
  return {};
}

std::optional<Plan> PlanCache::find(const std::string& key) {
  if (!plans_.contains(key) && !file_.empty() && turn_ < 0) {
    take_turn();
    plans_.merge(read());
    if (plans_.contains(key)) end_turn();
  }
  const auto found = plans_.find(key);
  if (found == plans_.end()) return std::nullopt;
  return found->second;
}

// Without the turn where the file cannot be locked, or where others keep it for too long.
void PlanCache::take_turn() {
  std::error_code error;
  std::filesystem::create_directories(file_.parent_path(), error);
  turn_ = open((file_.string() + ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  constexpr std::chrono::milliseconds pause(20);
  while (turn_ >= 0 && flock(turn_, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK || patience_ < pause) return end_turn();
    std::this_thread::sleep_for(pause);
    patience_ -= pause;
  }
}

void PlanCache::end_turn() {
  if (turn_ >= 0) close(turn_);
  turn_ = -1;
}

void PlanCache::add(const std::string& key, const Plan& plan) {
  plans_[key] = plan;
  if (file_.empty()) return;
  try {
    Plans all = read();
    all[key] = plan;
    if (file_.has_parent_path()) std::filesystem::create_directories(file_.parent_path());
    write_file_atomically(file_, print(all), Sync::no);
  } catch (const std::exception& failure) {
    trouble_ = failure.what();
  }
}

std::filesystem::path default_plan_cache() {
  const auto below = [](const char* variable, const char* rest) {
    const char* value = std::getenv(variable);
    return value != nullptr && *value != 0 ? std::filesystem::path(value) / rest : std::filesystem::path();
  };
  const std::filesystem::path first = below("XDG_CACHE_HOME", "paceline/cudnn-plans.txt");
  return first.empty() ? below("HOME", ".cache/paceline/cudnn-plans.txt") : first;
}

}  // namespace paceline::train::cuda
