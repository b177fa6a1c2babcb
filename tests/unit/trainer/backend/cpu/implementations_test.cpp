// SPDX-License-Identifier: Apache-2.0
// The code that is chosen for every layer of every model on each instruction set: never oneDNN's reference code, and at
// full width what the table of that version of oneDNN in tests/data/implementations lists. AVX-512 is simulated
// (simulated_processor.h). A process can only use one instruction set, so this program starts itself anew for each:
//
//   trainer_implementations_test list ISA [WIDTHS] [f32|bf16]     a line for each layer. With AVX512_CORE and
//                                     AVX512_CORE_BF16 the environment needs PACELINE_SIMULATED_PROCESSOR=ISA
//   trainer_implementations_test table > tests/data/implementations/onednn-VERSION.md
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <optional>
#include <sstream>
#include <stdexcept>

#include "tests/unit/trainer/backend/cpu/implementations.h"
#include "tests/unit/trainer/backend/cpu/simulated_processor.h"
#include "trainer/core/error.h"
#include "trainer/nn/models.h"

namespace paceline::train {
namespace {

constexpr int not_here = 77;  // the status if this processor and oneDNN cannot use or simulate the instruction set

struct Case {
  const char *isa, *dtype;
  friend void PrintTo(const Case& c, std::ostream* out) { *out << c.isa << ' ' << c.dtype; }
};

// Layers in order of their appearance, each with the names of its code.
using Chosen = std::vector<std::pair<std::string, std::string>>;

// The names in the order of the computations; one name if it is the same for all.
std::string joined(const std::vector<Choice>& choices, std::size_t first, std::size_t end) {
  std::string all;
  bool same = true;
  for (std::size_t i = first; i < end; ++i) {
    same = same && choices[i].implementation == choices[first].implementation;
    all += (i > first ? " / " : "") + choices[i].implementation;
  }
  return same ? choices[first].implementation : all;
}

void add(Chosen& chosen, const std::vector<Choice>& choices) {
  for (std::size_t first = 0, end = 0; first < choices.size(); first = end) {
    while (end < choices.size() && choices[end].layer == choices[first].layer) ++end;
    const std::string& layer = choices[first].layer;
    const std::string names = joined(choices, first, end);
    const auto found = std::ranges::find(chosen, layer, &Chosen::value_type::first);
    if (found == chosen.end()) {
      chosen.emplace_back(layer, names);
    } else if ((" or " + found->second + " or ").find(" or " + names + " or ") == std::string::npos) {
      found->second += " or " + names;  // equal layers may follow ones with different layouts
    }
  }
}

int list(const std::string& isa, const std::string& widths, const std::string& dtype) {
  using Isa = dnnl::cpu_isa;
  static const std::map<std::string, Isa> known{{"SSE41", Isa::sse41},
                                                {"AVX", Isa::avx},
                                                {"AVX2", Isa::avx2},
                                                {"AVX512_CORE", Isa::avx512_core},
                                                {"AVX512_CORE_BF16", Isa::avx512_core_bf16}};
  if (dnnl::set_max_cpu_isa(known.at(isa)) != dnnl::status::success) return not_here;
  if (dnnl::get_effective_cpu_isa() != known.at(isa)) return not_here;
  const onednn::Type type = dtype == "bf16" ? onednn::Type::bf16 : onednn::Type::f32;
  if (type == onednn::Type::bf16 && !onednn::why_no_bf16().empty()) return not_here;
  Chosen chosen;
  std::istringstream parts(widths);
  for (std::string width; std::getline(parts, width, ',');) {
    for (const std::string& model : model_names()) {
      for (const std::int64_t size : {32, 224}) {
        ModelOptions options;
        options.name = model;
        options.image_size = size;
        options.width = std::stod(width);
        options.cifar_stem = size == 32;  // as the trainer does
        std::optional<Network> network;
        try {
          network = build_network(options);
        } catch (const Error&) {  // the images are too small for this network
          continue;
        }
        add(chosen, choices_of(*network, 16, type));
      }
    }
  }
  for (const auto& [layer, names] : chosen) std::printf("%s: %s\n", layer.c_str(), names.c_str());
  return 0;
}

// What list() prints; empty if the instruction set is neither there nor can be simulated.
Chosen listed(const Case& c, const char* widths) {
  const bool simulated = std::string(c.isa).starts_with("AVX512");
  std::string command = simulated ? std::string(simulated_processor) + "=" + c.isa + " " : "";
  command += "/proc/" + std::to_string(getpid()) + "/exe list " + c.isa + " " + widths + " " + c.dtype;
  FILE* const out = popen(command.c_str(), "r");
  if (out == nullptr) throw std::runtime_error("cannot start " + command);
  std::string text;
  std::array<char, 4096> part{};
  for (std::size_t count = 1; count > 0;) {
    count = fread(part.data(), 1, part.size(), out);
    text.append(part.data(), count);
  }
  const int status = pclose(out);
  if (WIFEXITED(status) && WEXITSTATUS(status) == not_here) return {};
  if (status != 0 || text.empty()) throw std::runtime_error(command + " failed");
  Chosen chosen;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    const std::size_t colon = line.find(": ");
    chosen.emplace_back(line.substr(0, colon), line.substr(colon + 2));
  }
  return chosen;
}

constexpr Case columns[]{{"AVX2", "f32"}, {"AVX512_CORE", "f32"}, {"AVX512_CORE_BF16", "bf16"}};

int print_table() {
  std::puts("| layer | AVX2, f32 | AVX512_CORE, f32 | AVX512_CORE_BF16, bf16 |\n|---|---|---|---|");
  std::array<Chosen, std::size(columns)> chosen;
  for (std::size_t i = 0; i < chosen.size(); ++i) chosen[i] = listed(columns[i], "1");
  for (const auto& [layer, names] : chosen[0]) {
    std::string row = "| " + layer + " | " + names + " |";
    for (std::size_t i = 1; i < chosen.size(); ++i) {
      const auto found = std::ranges::find(chosen[i], layer, &Chosen::value_type::first);
      row += " " + (found == chosen[i].end() ? "–" : found->second) + " |";
    }
    std::puts(row.c_str());
  }
  return 0;
}

// A column of the table of this version of oneDNN, from 1; empty if there is no table.
std::map<std::string, std::string> column_of_table(std::size_t column) {
  const std::string version = onednn::version();
  std::ifstream file(std::string(PACELINE_TEST_DATA) + "/implementations/onednn-" +
                     version.substr(0, version.rfind('.')) + ".md");
  std::map<std::string, std::string> result;
  std::size_t number = 0;
  for (std::string line; std::getline(file, line);) {
    if (++number <= 2) continue;  // the heads
    std::vector<std::string> cells;
    for (std::size_t at = 2; at < line.size();) {
      const std::size_t end = line.find(" |", at);
      cells.push_back(line.substr(at, end - at));
      at = end + 3;
    }
    result[cells.at(0)] = cells.at(column);
  }
  return result;
}

class Implementations : public testing::TestWithParam<Case> {};

TEST_P(Implementations, AreNeverTheReferenceCode) {
  const Chosen chosen = listed(GetParam(), "1,0.5,0.3,0.25,0.125,0.0625");
  if (chosen.empty()) GTEST_SKIP() << "neither available nor simulated here";
  for (const auto& [layer, names] : chosen) {
    EXPECT_FALSE(onednn::is_reference(names)) << layer << ": " << names;
  }
}

INSTANTIATE_TEST_SUITE_P(On, Implementations,
                         testing::Values(Case{"SSE41", "f32"}, Case{"AVX", "f32"}, Case{"AVX2", "f32"},
                                         Case{"AVX512_CORE", "f32"}, Case{"AVX512_CORE_BF16", "f32"},
                                         Case{"AVX512_CORE_BF16", "bf16"}),
                         [](const auto& info) { return std::string(info.param.isa) + "_" + info.param.dtype; });

TEST(TableOfImplementations, HasWhatIsChosenForEveryLayer) {
  const std::map<std::string, std::string> first = column_of_table(1);
  if (first.empty()) GTEST_SKIP() << "there is no table for oneDNN " << onednn::version();
  for (std::size_t i = 0; i < std::size(columns); ++i) {
    SCOPED_TRACE(columns[i].isa);
    const std::map<std::string, std::string> expected = column_of_table(i + 1);
    const Chosen chosen = listed(columns[i], "1");
    if (chosen.empty()) continue;
    EXPECT_EQ(chosen.size(), expected.size());
    for (const auto& [layer, names] : chosen) {
      const auto found = expected.find(layer);
      ASSERT_NE(found, expected.end()) << layer;
      EXPECT_EQ(names, found->second) << layer;
    }
  }
}

}  // namespace
}  // namespace paceline::train

int main(int argc, char** argv) {
  const std::string word = argc > 1 ? argv[1] : "";
  try {
    if (word == "table") return paceline::train::print_table();
    if (word == "list" && argc > 2) {
      return paceline::train::list(argv[2], argc > 3 ? argv[3] : "1", argc > 4 ? argv[4] : "f32");
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
