// More events than the recorder can write: which ones are kept, how the file reports the others, and --lossless.
#include <nlohmann/json.hpp>

#include "tests/integration/record/run.h"

namespace paceline::test {
namespace {

using format::EventType;

constexpr std::size_t iterations = 20;

class RecordOverload : public RecordTest {
 protected:
  nlohmann::json info() const {
    return nlohmann::json::parse(run(PACELINE " info --format json run").out, nullptr, false)["traces"][0];
  }
};

TEST_F(RecordOverload, KeepsTheOuterRangesAndTheTimesOfTheOthers) {
  const Ended ended = record("--buffer 256K", CONTROL " overload 100000");
  EXPECT_TRUE(ended.by_itself(0)) << ended.err;
  const RecordedFile file = only_file();
  EXPECT_EQ(file.named(EventType::push, "iteration").size(), iterations);
  EXPECT_EQ(file.named(EventType::push, "forward").size(), iterations);
  const std::uint64_t dropped = file.file.header.dropped[static_cast<int>(format::DropCause::no_free_chunk)];
  ASSERT_GT(dropped, 1000u);
  std::uint64_t located = 0;
  for (const format::LostStretch& lost : file.file.lost) located += lost.events;
  EXPECT_EQ(located, dropped);
  EXPECT_EQ(info()["dropped"], dropped);
  EXPECT_GT(info()["lost"].size(), 0u);
  EXPECT_NE(run(PACELINE " info run").out.find("events lost on main thread from"), std::string::npos);
  const auto report = nlohmann::json::parse(run(PACELINE " report --format json run").out, nullptr, false)["runs"][0];
  EXPECT_EQ(report["lost"]["located"], true);
  EXPECT_EQ(report["lost"]["events"], dropped);
  EXPECT_GT(report["lost"]["iterations_left_out"], 0);
  EXPECT_FALSE(report.contains("breakdown"));
}

TEST_F(RecordOverload, WithLosslessNothingIsLostAndInfoShowsTheWaits) {
  const Ended ended = record("--buffer 256K --lossless", CONTROL " overload 20000");
  EXPECT_TRUE(ended.by_itself(0)) << ended.err;
  const RecordedFile file = only_file();
  EXPECT_EQ(file.dropped(), 0u);
  EXPECT_EQ(file.named(EventType::push, "inner").size(), 20'000 * iterations);
  EXPECT_GT(info()["recorder_wait_ns"], 0);
  EXPECT_NE(run(PACELINE " info run").out.find("for the recorder in all"), std::string::npos);
}

// None of these may make a thread wait without end or leave an unreadable file.
TEST_F(RecordOverload, LosslessDoesNotBlockAtAFullFileARingOrASuddenEnd) {
  for (const char* options :
       {"--buffer 256K --lossless --max-size 1M", "--buffer 256K --lossless --ring 1", "--buffer 256K --ring 1"}) {
    const Ended ended = record(options, CONTROL " overload 20000");
    EXPECT_TRUE(ended.by_itself(0)) << options << ended.err;
    EXPECT_FALSE(only_file().file.damaged) << options << only_file().file.damage;
    std::filesystem::remove_all(directory / "run");
  }
}

}  // namespace
}  // namespace paceline::test
