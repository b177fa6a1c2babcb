// SPDX-License-Identifier: Apache-2.0
// The example of docs/hacking.md, an event source, as it is compiled here.
#include <unistd.h>

#include <fstream>
#include <iterator>

#include "profiler/inject/buffer/writer.h"
#include "profiler/inject/process/lifecycle.h"
#include "profiler/inject/process/source.h"
#include "tests/unit/profiler/inject/child.h"

namespace paceline::inject {
extern const Source sleep_source;
}

namespace paceline::test {
namespace {

using format::EventType;

class ExampleSource : public RecordingTest {};

TEST_F(ExampleSource, RecordsEachCallOfSleepAsARange) {
  RECORD({
    inject::open_recorder();
    inject::sleep_source.opened();  // it is not in sources.def
    sleep(0);
    sleep(0);
  });
  const RecordedFile file = only_file();
  const auto begins = file.named(EventType::push, "sleep");
  ASSERT_EQ(begins.size(), 2U);
  EXPECT_EQ(begins[0].domain, "libc");
  EXPECT_EQ(file.of(EventType::pop).size(), 2U);
}

std::string text_of(const std::string& path) {
  std::ifstream file(SOURCE_DIRECTORY + ("/" + path));
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(Hacking, ShowsTheExampleSourceAsItIsCompiled) {
  const std::string example = text_of("tests/unit/profiler/inject/sources/example_source.cpp");
  ASSERT_FALSE(example.empty());
  EXPECT_NE(text_of("docs/hacking.md").find("```cpp\n" + example + "```\n"), std::string::npos);
}

}  // namespace
}  // namespace paceline::test
