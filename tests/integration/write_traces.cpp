// SPDX-License-Identifier: Apache-2.0
// usage: write_traces DIR. Makes traces for read_trace_test.py, and beside each, as JSON, what went into it.
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "profiler/format/block.h"
#include "profiler/format/writer.h"
#include "tests/unit/profiler/format/streams.h"

namespace {

using namespace paceline::format;
using nlohmann::json;

json slots_of(const std::vector<Track>& tracks) {
  json list = json::array();
  for (const Track& track : tracks) {
    json slots = json::array();
    for (const Slot& slot : track.slots) slots.push_back({slot.high, slot.low});
    list.push_back({{"id", track.id}, {"thread_id", track.thread_id}, {"slots", std::move(slots)}});
  }
  return list;
}

// Tracks of several chunks: events of all types at random, and a trainer's stream.
std::vector<Track> tracks() {
  std::mt19937_64 random(4);
  std::vector<Slot> slots;
  while (slots.size() < 2 * slots_per_chunk + 100) testing::append_random(slots, random);
  // A random name might not be UTF-8, nor its id be there once: the raw slots are what is compared here.
  return {{0, 10, slots},
          {3, 11, testing::trainer_stream(slots_per_chunk + 1000, 30).slots},
          {4, 12, testing::trainer_stream(300, 4).slots},
          {5, 13, testing::trainer_stream(200, 4).slots},  // in a page each, where they are live
          {6, 14, testing::trainer_stream(150, 4).slots}};
}

TraceWriter named_events(const HeaderFacts& facts, json& ranges) {
  TraceWriter writer(facts);
  writer.thread(1, 4712, "loader");
  const std::uint64_t iteration = writer.scope("iteration", "paceline.trainer", "iteration");
  const std::uint64_t layer = writer.scope("layer1.0.conv1 — ä", "paceline.trainer", "layer");
  const std::uint64_t other = writer.scope("other");
  const auto push = [&](std::uint32_t track, std::uint64_t ticks, std::uint64_t scope) {
    writer.add(track, ticks, EventType::push, scope);
  };
  const auto pop = [&](std::uint32_t track, std::uint64_t ticks, std::uint64_t scope) {
    writer.add(track, ticks, EventType::pop, scope >> 48);
  };
  for (std::uint64_t i = 0; i < 3000; ++i) {
    const std::uint64_t at = 1000 + i * 1000;
    writer.add(0, at, EventType::push_payload, iteration, {{2, ~i}});
    push(0, at + 10, other);
    push(0, at + 20, layer);
    pop(0, at + 30, other);  // domains are stacks of their own
    pop(0, at + 40, layer);
    pop(0, at + 900, iteration);
    ranges.push_back({0, at + 10, at + 30, "other", "", "", nullptr});
    ranges.push_back({0, at + 20, at + 40, "layer1.0.conv1 — ä", "paceline.trainer", "layer", nullptr});
    ranges.push_back(
        {0, at, at + 900, "iteration", "paceline.trainer", "iteration", -1 - static_cast<std::int64_t>(i)});
  }
  push(1, 5000, layer);
  pop(1, 6000, layer);
  ranges.push_back({1, 5000, 6000, "layer1.0.conv1 — ä", "paceline.trainer", "layer", nullptr});
  return writer;
}

}  // namespace

int main(int, char** arguments) {
  const std::filesystem::path directory = arguments[1];
  std::filesystem::create_directories(directory);
  HeaderFacts facts;
  facts.file_id = 5;
  facts.pid = 4711;
  facts.ticks_per_second = 1e9;
  facts.start_utc_ns = 1'700'000'000'000'000'000;
  facts.rank = 1;
  facts.world_size = 2;
  facts.host = "node \"7\"";
  facts.set = "model=resnet18";
  for (const auto& [name, ending] : {std::pair("closed", Ending::closed), std::pair("killed", Ending::killed)}) {
    const auto path = [&](const std::string& what) { return directory / (std::string(name) + what); };
    write_trace_file(path("-slots.pace"), facts, tracks(), ending);
    std::ofstream(path("-slots.json")) << slots_of(tracks());
    json ranges = json::array();
    named_events(facts, ranges).write(path("-ranges.pace"), ending);
    std::ofstream(path("-ranges.json")) << ranges;
  }
}
