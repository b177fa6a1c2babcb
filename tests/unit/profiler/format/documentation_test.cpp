// SPDX-License-Identifier: Apache-2.0
// docs/trace-format.md is what other programs are written from: where it lists things, it lists all of them.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "profiler/format/event_table.h"
#include "profiler/format/mpi_functions.h"

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

// The cells of each row of a Markdown table that begins with a line of this head.
std::vector<std::vector<std::string>> table_under(const std::string& head) {
  std::istringstream text(documentation());
  std::vector<std::vector<std::string>> rows;
  std::string line;
  while (std::getline(text, line) && !line.starts_with(head)) {
  }
  std::getline(text, line);  // the rule below the head
  while (std::getline(text, line) && line.starts_with("| ")) {
    std::vector<std::string> cells(1);
    for (std::size_t i = 2; i < line.size(); ++i) {
      const bool escaped = line.compare(i, 2, "\\|") == 0;
      if (line[i] == '|') {
        cells.emplace_back();
      } else {
        cells.back() += line[escaped ? ++i : i];
      }
    }
    cells.pop_back();
    for (std::string& cell : cells) {
      cell.erase(0, cell.find_first_not_of(' '));
      cell.erase(cell.find_last_not_of(' ') + 1);
    }
    rows.push_back(std::move(cells));
  }
  return rows;
}

TEST(Documentation, ListsEachEventTypeWithItsNameAndSlots) {
  std::vector<std::string> documented, expected;
  for (const auto& row : table_under("| type | name | extension slots |")) {
    ASSERT_GE(row.size(), 4U);
    documented.push_back(fmt::format("{} {} {}", row[0], row[1], row[2]));
  }
  for (const EventInfo& info : event_table) {
    const std::string slots = info.extension_slots == in_bytes ? "⌈bytes / 16⌉" : std::to_string(info.extension_slots);
    expected.push_back(fmt::format("{} {} {}", static_cast<int>(info.type), info.name, slots));
  }
  EXPECT_EQ(documented, expected);
}

// "low 0:16, ext.high Δ": a word alone is all of its bits.
std::string columns_text(const EventInfo& info) {
  constexpr const char* words[] = {"low", "ext.high", "ext.low", "ext2.high", "ext2.low"};
  std::string text;
  for (const Field& field : info.columns) {
    text += text.empty() ? "" : ", ";
    text += words[field.word];
    if (field.bits < 64) text += fmt::format(" {}:{}", field.shift, field.bits);
    if (field.coding != Coding::plain) text += field.coding == Coding::delta ? " Δ" : " Σ";
  }
  return text;
}

TEST(Documentation, ListsTheColumnsOfEachEventType) {
  std::map<std::string, std::string> documented;
  for (const auto& row : table_under("| type | columns |")) {
    ASSERT_EQ(row.size(), 2U);
    std::istringstream names(row[0]);
    for (std::string name; std::getline(names >> std::ws, name, ',');) {
      EXPECT_TRUE(documented.emplace(name, row[1].substr(0, row[1].find(';'))).second) << name;
    }
  }
  for (const EventInfo& info : event_table) {
    EXPECT_EQ(documented[std::string(info.name)], columns_text(info)) << info.name;
  }
  EXPECT_EQ(documented.size(), std::size(event_table));
}

// The text names definitions by their numbers: "(1 to 5, 64 to 69, 107, 128)".
TEST(Documentation, ListsTheTypesThatAreDefinitions) {
  const std::string text = documentation();
  const std::size_t begin = text.find("**Definitions** (");
  ASSERT_NE(begin, std::string::npos);
  std::istringstream list(text.substr(begin + 17, text.find(')', begin) - begin - 17));
  std::set<int> documented, expected;
  for (std::string part; std::getline(list, part, ',');) {
    const std::size_t to = part.find(" to ");
    const int last = std::stoi(to == std::string::npos ? part : part.substr(to + 4));
    for (int type = std::stoi(part); type <= last; ++type) documented.insert(type);
  }
  for (const EventInfo& info : event_table) {
    if (defines(info.type)) expected.insert(static_cast<int>(info.type));
  }
  EXPECT_EQ(documented, expected);
}

}  // namespace
}  // namespace paceline::format
