// docs/trace-format.md is what other programs are written from: where it lists things, it lists all of them.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <fstream>
#include <string>

#include "profiler/format/columns.h"
#include "profiler/format/mpi_functions.h"
#include "tests/unit/profiler/format/events.h"

namespace paceline::format {
namespace {

std::string documentation() {
  std::ifstream file(SOURCE_DIRECTORY "/docs/trace-format.md");
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(Documentation, ListsEachMpiFunctionUnderItsNumber) {
  const std::string text = documentation();
  for (const MpiFunction& function : mpi_functions) {
    const std::string entry = fmt::format(" {} {}", static_cast<int>(function.id), function.name.substr(4));
    EXPECT_TRUE(text.find(entry + ",") != std::string::npos || text.find(entry + " |") != std::string::npos) << entry;
  }
}

TEST(Documentation, ListsEachEventType) {
  const std::string text = documentation();
  int known = 0;
  for (unsigned type = 1; type < 256; ++type) {
    if (fields_of(static_cast<EventType>(type)).empty()) continue;
    ++known;
    EXPECT_NE(text.find(fmt::format("\n| {} | ", type)), std::string::npos) << type;
  }
  EXPECT_EQ(known, static_cast<int>(std::size(testing::all_types)));
}

}  // namespace
}  // namespace paceline::format
