// SPDX-License-Identifier: Apache-2.0
#include "trainer/checkpoint/checkpoint.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string_view>

#include "trainer/core/error.h"
#include "trainer/core/whole_file.h"

namespace paceline::train {
namespace {

static_assert(std::endian::native == std::endian::little, "checkpoints are written as they lie in memory");

constexpr std::string_view magic = "paceline-checkpoint 1\n";

void append(std::string& content, std::uint64_t value) {
  content.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void append(std::string& content, std::span<const float> values) {
  content.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
}

std::size_t elements(const Parameter& parameter) {
  std::size_t count = 1;
  for (const std::int64_t extent : parameter.shape) count *= static_cast<std::size_t>(extent);
  return count;
}

// Takes bytes from the front of `rest`; returns an empty view if there are too few.
std::string_view take(std::string_view& rest, std::size_t bytes) {
  if (rest.size() < bytes) return {};
  const std::string_view taken = rest.substr(0, bytes);
  rest.remove_prefix(bytes);
  return taken;
}

std::uint64_t number_at(std::string_view bytes) {
  std::uint64_t value = 0;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

std::vector<float> floats_of(std::string_view bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

nlohmann::json shapes_of(const Model& model) {
  auto shapes = nlohmann::json::array();
  for (const Parameter& parameter : model.parameters()) {
    shapes.push_back({{"name", parameter.name}, {"shape", parameter.shape}});
  }
  return shapes;
}

}  // namespace

void write_checkpoint(const std::filesystem::path& file, const Position& position, Model& model, Optimizer& optimizer,
                      const RunState& state, unsigned keep) {
  const std::size_t ranks =
      state.rank_statistics.empty() ? 0 : state.rank_statistics.size() / model.statistics().size();
  const std::string header =
      nlohmann::json{{"model", position.model},
                     {"image_size", position.image_size},
                     {"classes", position.classes},
                     {"seed", position.seed},
                     {"iteration", position.iteration},
                     {"iterations_per_epoch", position.iterations_per_epoch},
                     {"parameters", shapes_of(model)},
                     {"statistics", model.statistics().size()},
                     {"optimizer", {{"name", optimizer.name()}, {"scalars", optimizer.scalars()}}},
                     {"ranks", ranks},
                     {"pending", !state.pending.empty()},
                     {"warm_start", state.warm_start.size()},
                     {"best_accuracy", state.best_accuracy},
                     {"images_per_iteration", position.images_per_iteration},
                     {"run",
                      {{"settings", state.facts.settings},
                       {"data", state.facts.data},
                       {"data_hash", state.facts.data_hash},
                       {"iterations", state.facts.iterations}}}}
          .dump();
  std::string content;
  content.reserve(2 * model.weights().size_bytes() + model.statistics().size_bytes() + header.size() + 64);
  content.append(magic);
  append(content, header.size());
  content.append(header);
  for (const Parameter& parameter : model.parameters()) append(content, model.to_plain(parameter, model.weights()));
  std::vector<float> room;
  append(content, model.memory().readable(model.statistics(), room));
  for (const std::vector<float>& array : optimizer.arrays()) {
    for (const Parameter& parameter : model.parameters()) append(content, model.to_plain(parameter, array));
  }
  if (!state.pending.empty()) {
    for (const Parameter& parameter : model.parameters()) append(content, model.to_plain(parameter, state.pending));
  }
  append(content, state.rank_statistics);
  append(content, state.warm_start);
  append(content, XXH3_64bits(content.data(), content.size()));
  write_file_atomically(file, content, Sync::yes, keep);
}

std::filesystem::path best_checkpoint(const std::filesystem::path& file) { return file.string() + ".best"; }

// A second name of the same file, which costs no space until the next checkpoint replaces the first; a copy where the
// file system has no such names.
void keep_as_best(const std::filesystem::path& file) {
  const std::filesystem::path best = best_checkpoint(file), fresh = best.string() + ".tmp";
  std::error_code code;
  std::filesystem::remove(fresh, code);
  const std::filesystem::path written = std::filesystem::canonical(file, code);
  if (!code) std::filesystem::create_hard_link(written, fresh, code);
  if (code) std::filesystem::copy_file(file, fresh, code);
  if (!code) std::filesystem::rename(fresh, best, code);
  if (!code) return;
  std::error_code none;
  std::filesystem::remove(fresh, none);
  throw Error(best.string(), "the best checkpoint cannot be kept", code.message());
}

void check_no_checkpoint(const std::filesystem::path& file) {
  std::error_code code;
  if (std::filesystem::file_size(file, code) == 0 || code) return;
  throw Error(file.string(), "exists already",
              "go on from it with ‹resume›, name another file, or give ‹overwrite-checkpoint›");
}

Position read_checkpoint(const std::filesystem::path& file, const Position& expected, Model& model,
                         Optimizer& optimizer, RunState* state) {
  const auto refuse = [&](const std::string& wrong, const std::string& remedy) {
    return Error(file.string(), wrong, remedy);
  };
  const char* const other_file = "name the checkpoint of this run";
  const std::string content = read_file(file);

  std::string_view rest = content;
  if (take(rest, magic.size()) != magic) throw refuse("not a checkpoint of paceline-train", other_file);
  const auto damaged = [&] {
    const std::string older = file.string() + ".1";
    std::error_code code;
    return refuse("damaged checkpoint (its checksum does not match)",
                  "use " + (std::filesystem::exists(older, code) ? older + ", the one before it" : "an older one"));
  };
  if (rest.size() < 2 * sizeof(std::uint64_t)) throw damaged();
  const std::size_t hashed = content.size() - sizeof(std::uint64_t);
  if (XXH3_64bits(content.data(), hashed) != number_at(std::string_view(content).substr(hashed))) throw damaged();
  rest.remove_suffix(sizeof(std::uint64_t));

  // The checksum matches, so the content is as it was written, and JSON and lengths fit each other.
  const std::uint64_t header_bytes = number_at(take(rest, sizeof(std::uint64_t)));
  const nlohmann::json header = nlohmann::json::parse(take(rest, header_bytes));
  Position position{header.at("model"),
                    header.at("image_size"),
                    header.at("classes"),
                    header.at("seed"),
                    header.at("iteration"),
                    header.at("iterations_per_epoch"),
                    header.at("images_per_iteration")};
  if (position.model != expected.model || position.image_size != expected.image_size ||
      position.classes != expected.classes || header.at("parameters") != shapes_of(model)) {
    throw refuse(
        fmt::format("the checkpoint of a {} for {} classes of {}-pixel images, not of a {} for {} classes of {}-pixel "
                    "images",
                    position.model, position.classes, position.image_size, expected.model, expected.classes,
                    expected.image_size),
        other_file);
  }
  const auto fill = [&](std::span<float> flat) {
    for (const Parameter& parameter : model.parameters()) {
      model.from_plain(parameter, floats_of(take(rest, elements(parameter) * sizeof(float))), flat);
    }
  };
  fill(model.weights());
  model.memory().copy(floats_of(take(rest, model.statistics().size_bytes())), model.statistics());
  const nlohmann::json& then = header.at("optimizer");
  if (then.at("name") != optimizer.name()) {
    throw refuse(
        fmt::format("the checkpoint of ‹optimizer› {}, not {}", then.at("name").get<std::string>(), optimizer.name()),
        other_file);
  }
  for (std::vector<float>& array : optimizer.arrays()) fill(array);
  optimizer.scalars() = then.at("scalars").get<std::vector<double>>();
  if (state == nullptr) return position;
  *state = {};
  if (header.at("pending").get<bool>()) {
    state->pending.resize(model.weights().size());
    fill(state->pending);
  }
  const std::size_t ranks = header.at("ranks");
  if (const auto run = header.find("run"); run != header.end()) {
    state->facts = {run->at("settings"), run->at("data"), run->at("data_hash"), run->at("iterations"), ranks};
  }
  state->rank_statistics = floats_of(take(rest, ranks * model.statistics().size_bytes()));
  state->warm_start = floats_of(take(rest, header.value("warm_start", std::size_t{0}) * sizeof(float)));
  state->best_accuracy = header.value("best_accuracy", -1.0);
  return position;
}

}  // namespace paceline::train
