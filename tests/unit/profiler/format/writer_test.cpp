// SPDX-License-Identifier: Apache-2.0
#include "profiler/format/writer.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include "profiler/format/error.h"

namespace paceline::format {
namespace {

TEST(TraceWriter, DefinesEachNameOnceBeforeAllElse) {
  const auto path = std::filesystem::temp_directory_path() / ("paceline-writer-" + std::to_string(getpid()) + ".pace");
  HeaderFacts facts;
  facts.pid = 100;
  facts.host = "node1";
  TraceWriter writer(facts);
  const std::uint64_t forward = writer.scope("forward", "paceline.trainer", "phase");
  EXPECT_EQ(writer.scope("forward", "paceline.trainer", "phase"), forward);
  EXPECT_EQ(writer.scope(""), 0U);
  writer.thread(1, 4712, "loader");
  writer.add(0, 10, EventType::push, forward);
  writer.add(0, 20, EventType::pop, 0);
  EXPECT_THROW(writer.add(0, 20, EventType::start, 0), Error);
  writer.write(path);
  const TraceFile trace = read_trace_file(path);
  std::filesystem::remove(path);

  std::vector<EventType> types;
  ASSERT_EQ(trace.tracks.size(), 2U);
  const auto& slots = trace.tracks[0].slots;
  for (std::size_t at = 0; at < slots.size(); at += 1 + extension_slots(slots[at])) types.push_back(type_of(slots[at]));
  EXPECT_THAT(types, ::testing::ElementsAre(EventType::name, EventType::name, EventType::domain, EventType::name,
                                            EventType::category, EventType::name, EventType::push, EventType::pop));
  EXPECT_EQ(trace.tracks[0].thread_id, 100U);
  EXPECT_EQ(trace.tracks[1].thread_id, 4712U);
}

TEST(TraceWriter, SaysWhichFileCannotBeWritten) {
  try {
    write_trace_file("/nonexistent/a.pace", {}, {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "/nonexistent/a.pace: cannot be written: No such file or directory");
  }
}

}  // namespace
}  // namespace paceline::format
