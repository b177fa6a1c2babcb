// SPDX-License-Identifier: Apache-2.0
// Programs and shared libraries that use NVTX, under the real recorder.
#include <algorithm>
#include <map>

#include "tests/integration/record/run.h"

namespace paceline::test {
namespace {

using format::EventType;

class RecordNvtx : public RecordTest {
 protected:
  RecordedFile ran(const std::string& way, const std::string& variables = "") {
    const Ended ended = run(recorded(variables) + NVTX_WAYS " " + way);
    EXPECT_TRUE(ended.by_itself(0)) << ended.status << " " << ended.err;
    EXPECT_EQ(ended.err, "");
    std::vector<RecordedFile> all = files();
    EXPECT_EQ(all.size(), 1u);
    if (all.empty()) return {};
    EXPECT_FALSE(all[0].file.damaged) << all[0].file.damage;
    EXPECT_EQ(all[0].dropped(), 0u);
    return std::move(all[0]);
  }
};

TEST_F(RecordNvtx, LibrariesComeAndGoAndShareTheirHandles) {
  const RecordedFile file = ran("libraries " NVTX_PLUGIN " " NVTX_PLUGIN_TOO);
  const auto pushes = file.named(EventType::push, "crossing");
  EXPECT_EQ(pushes.size(), 22u);
  EXPECT_EQ(file.of(EventType::push).size(), 22u);
  for (const RecordedEvent& push : pushes) EXPECT_EQ(push.domain, "plugin");
  EXPECT_EQ(file.of(EventType::pop).size(), 22u);
  EXPECT_EQ(file.of(EventType::domain).size(), 1u);
  EXPECT_GE(file.named(EventType::mark, "closing").size(), 21u);  // and once more if the library is still loaded then
}

TEST_F(RecordNvtx, ThreadsThatEndEarlyLeaveAllTheirEvents) {
  const RecordedFile file = ran("threads");
  EXPECT_EQ(file.named(EventType::mark, "thread").size(), 100u);
  EXPECT_EQ(file.named(EventType::push, "short-lived").size(), 100u);
  EXPECT_EQ(file.of(EventType::pop).size(), 50u);
  const auto start = file.named(EventType::start, "handed over");
  const auto end = file.of(EventType::end);
  ASSERT_EQ(start.size(), 1u);
  ASSERT_EQ(end.size(), 1u);
  EXPECT_EQ(end[0].head.low, start[0].extension[0].high);
  EXPECT_NE(end[0].track, start[0].track);
}

TEST_F(RecordNvtx, CallsFromExitHandlersAndDestructorsAreHarmless) {
  const Ended ended = run(recorded() + NVTX_WAYS " late");
  EXPECT_TRUE(ended.by_itself(0)) << ended.status << " " << ended.err;
  ASSERT_EQ(files().size(), 1u);
  const RecordedFile file = files()[0];
  EXPECT_EQ(file.file.header.closed, 1u);
  EXPECT_FALSE(file.file.damaged) << file.file.damage;
  EXPECT_EQ(file.named(EventType::mark, "end of main").size(), 1u);
  EXPECT_GE(file.named(EventType::push, "late").size(), 1u);
}

#ifdef PACELINE
TEST_F(RecordNvtx, NcclsPayloadsBecomeArgumentsOfItsRanges) {
  ran("nccl");
  const Ended csv = run(std::string(PACELINE) + " export --to csv run");
  ASSERT_TRUE(csv.by_itself(0)) << csv.err;
  const auto times = [](const std::string& text, const std::string& what) {
    int count = 0;
    for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; ++at) ++count;
    return count;
  };
  const std::string communicator = R"(""NCCL communicator ID"":18369614221190020847)";
  EXPECT_EQ(times(csv.out, ",ncclAllReduce,,"), 50);         // ranges
  EXPECT_EQ(times(csv.out, ",ncclAllReduce,enqueue,"), 50);  // what they enqueued
  EXPECT_EQ(times(csv.out, communicator), 52);
  EXPECT_EQ(
      times(csv.out, communicator + R"(,""Message size [bytes]"":4096,""Reduction operation"":""Sum"",""call"":)"), 2);
  EXPECT_EQ(times(csv.out, R"(""Message size [bytes]"":2097152,""Reduction operation"":""Sum"",""call"":)"), 2);
  EXPECT_EQ(times(csv.out, R"(""Reduction operation"":""Max"",""call"":)"), 16);
  EXPECT_EQ(times(csv.out, communicator + R"(,""Message size [bytes]"":1024,""Peer rank"":3,""call"":)"), 1);
  EXPECT_EQ(times(csv.out, communicator + R"(,""No. of ranks"":8})"), 1);  // came with the pop
  const Ended chrome = run(std::string(PACELINE) + " export --to chrome run");
  ASSERT_TRUE(chrome.by_itself(0)) << chrome.err;
  EXPECT_EQ(times(chrome.out, R"("name":"ncclAllReduce")"), 100);
  EXPECT_EQ(times(chrome.out, R"("domain":"NCCL","NCCL communicator ID":18369614221190020847)"), 52);
  EXPECT_EQ(times(chrome.out, R"("Message size [bytes]":1024,"Peer rank":3,"call":)"), 1);
}

TEST_F(RecordNvtx, InfoShowsTheFilter) {
  const Ended ended =
      run(std::string(PACELINE) + " record -o filtered --nvtx-exclude-domains NCCL,other " NVTX_WAYS " nccl");
  EXPECT_TRUE(ended.by_itself(4))
      << ended.err;  // the program asks whether its domain is enabled, and the answer is right
  const Ended text = run(std::string(PACELINE) + " info filtered");
  EXPECT_NE(text.out.find("NVTX domains left out: NCCL,other"), std::string::npos) << text.out;
  const Ended json = run(std::string(PACELINE) + " info --format json filtered");
  EXPECT_NE(json.out.find(R"("nvtx_exclude_domains": "NCCL,other")"), std::string::npos) << json.out;
}
#endif

}  // namespace
}  // namespace paceline::test
