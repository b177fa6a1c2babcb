// SPDX-License-Identifier: Apache-2.0
// Text in a trace is whatever the program or its author chose. No command passes control characters on to a terminal.
#include <nlohmann/json.hpp>

#include "profiler/format/mpi_functions.h"
#include "profiler/format/writer.h"
#include "tests/integration/command.h"

namespace paceline {
namespace {

using format::EventType;

// Sets the window's title, clears the screen (ESC and C1 forms), starts a line, and writes from right to left.
const std::string attack =
    "\x1b]0;x\x07\x1b[2J\n\xC2\x9B"
    "2J\xE2\x80\xAE\xE2\x81\xA6\x7F\r\t";

class HostileText : public CommandTest {
 protected:
  void write_rank(int rank) const {
    const std::string host = "h" + std::to_string(rank) + attack, job = "j" + attack, set = "model=m" + attack;
    const std::string arguments = "train" + attack + '\0' + attack + '\0';
    format::HeaderFacts facts;
    facts.file_id = 40 + static_cast<std::uint64_t>(rank);
    facts.pid = 100 + static_cast<std::uint32_t>(rank);
    facts.ticks_per_second = 1e9;
    facts.start_ticks = 5'000'000;
    facts.start_utc_ns = 1'700'000'000'000'000'000;
    facts.rank = rank;
    facts.world_size = 2;
    facts.host = facts.boot_id = host.c_str();
    facts.job = job.c_str();
    facts.set = set.c_str();
    facts.command = {arguments.data(), arguments.size()};
    format::TraceWriter writer(facts);
    writer.thread(0, facts.pid, "t" + attack);
    writer.add(0, 10, EventType::communicator, 1 | std::uint64_t{2} << 32,
               {{4711, static_cast<std::uint64_t>(rank) | std::uint64_t{writer.name("c" + attack)} << 32}});
    writer.add(0, 11, EventType::setting, writer.name("cpu_model") | std::uint64_t{writer.name("m" + attack)} << 32);
    writer.add(0, 12, EventType::setting, writer.name("nvtx_domains") | std::uint64_t{writer.name(attack)} << 32);
    constexpr auto allreduce = static_cast<std::uint64_t>(format::MpiId::Allreduce);
    std::uint64_t at = 1'000'000, sequence = 0;
    for (std::uint64_t step = 0; step < 40; ++step, at += 10'000'000) {
      writer.add(0, at, EventType::push, writer.scope("iteration", "d" + attack));
      writer.add(0, at + 1, EventType::push, writer.scope("r" + attack, "d" + attack, "k" + attack));
      writer.add(0, at + 5'000'000 + 1000 * static_cast<std::uint64_t>(rank), EventType::pop,
                 writer.domain("d" + attack));
      if (step < 39 || rank == 0) {  // rank 1 never comes to the last one
        writer.add(0, at + 6'000'000, EventType::mpi_begin_coll, allreduce | std::uint64_t{0xffffffff} << 16,
                   {{4096, 1 | sequence++ << 32}});
        if (step == 39) break;
        writer.add(0, at + 8'000'000, EventType::mpi_end, allreduce);
      }
      writer.add(0, at + 9'000'000, EventType::pop, writer.domain("d" + attack));
    }
    const std::string name = "rank" + std::to_string(rank) + "\x1b]0;x\x07.pace";
    writer.write(directory_ / "run" / name, rank == 0 ? format::Ending::killed : format::Ending::closed);
  }

  // The first byte that a terminal could obey, with what stands around it; "" if there is none.
  static std::string obeyed(const std::string& text) {
    for (std::size_t i = 0; i < text.size(); ++i) {
      const auto byte = [&](std::size_t at) { return at < text.size() ? static_cast<unsigned char>(text[at]) : 0; };
      const bool control = (byte(i) < 0x20 && text[i] != '\n') || byte(i) == 0x7F;
      const bool c1 = byte(i) == 0xC2 && byte(i + 1) < 0xA0;
      const bool bidi = byte(i) == 0xE2 && ((byte(i + 1) == 0x80 && byte(i + 2) >= 0xAA && byte(i + 2) <= 0xAE) ||
                                            (byte(i + 1) == 0x81 && byte(i + 2) >= 0xA6 && byte(i + 2) <= 0xA9));
      if (control || c1 || bidi) {
        return ::testing::PrintToString(text.substr(i < 60 ? 0 : i - 60, 90));
      }
    }
    return "";
  }
};

TEST_F(HostileText, ReachesNoTerminal) {
  for (const int rank : {0, 1}) write_rank(rank);
  std::ofstream(directory_ / "run" / "cut\x1b[2J.pace")
      << text_of(directory_ / "run" / "rank1\x1b]0;x\x07.pace").substr(0, 40);
  const std::string sql =
      " run \"SELECT r.host, s.name, s.domain, s.category FROM slices s JOIN ranks r ON r.rank = s.rank\"";
  for (const std::string& command : {std::string("info run"),
                                     std::string("info --format json run"),
                                     std::string("report run"),
                                     std::string("report --format md run"),
                                     std::string("report --format json run"),
                                     std::string("report --format csv run"),
                                     std::string("report --format html -o r.html run"),
                                     std::string("report run run/*0*"),
                                     std::string("compare run run"),
                                     std::string("compare --format md run run"),
                                     std::string("compare --format json run run"),
                                     std::string("whatif run"),
                                     std::string("whatif --format json run"),
                                     std::string("whatif --relieve nobody run"),
                                     std::string("watch --once run"),
                                     std::string("watch --json --once run"),
                                     "query" + sql,
                                     "query --format csv" + sql,
                                     "query --format json" + sql,
                                     "query --format tsv" + sql,
                                     std::string("info run/cut*"),
                                     std::string("report run/cut*")}) {
    const Outcome outcome = paceline(command);
    EXPECT_EQ(obeyed(outcome.errors), "") << command;
    // The fields of TSV are divided by tabs.
    std::string output = outcome.output;
    if (command.find("tsv") != std::string::npos) std::ranges::replace(output, '\t', ' ');
    EXPECT_EQ(obeyed(output), "") << command;
    EXPECT_FALSE(output.empty() && outcome.errors.empty() && command.find("html") == std::string::npos) << command;
  }
  // JSON keeps the text.
  const auto traces = nlohmann::json::parse(paceline("info --format json run").output)["traces"];
  ASSERT_EQ(traces.size(), 2U);
  EXPECT_EQ(traces[0]["host"], "h0" + attack);
  // A newline in a name begins no line.
  EXPECT_EQ(paceline("info run").output.find("\n2J"), std::string::npos);
}

}  // namespace
}  // namespace paceline
