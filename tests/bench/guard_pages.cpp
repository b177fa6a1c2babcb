// SPDX-License-Identifier: Apache-2.0
// Runs every distinct convolution of the models, and what stands between them, on memory between pages that nobody may
// touch, under each set of instructions that this processor and oneDNN have. The tests run a few of them
// (tests/unit/trainer/backend/cpu/guard_pages_test.cpp). All of them take long; few widths and sizes take minutes. Each
// fault is a line, and the status is then 1.
//
//   guard_pages [isa=SSE41,AVX,AVX2,default] [models=…] [widths=…] [sizes=…] [batches=…] [threads=…] [reference=2e8]
//               [convolutions]
//
// guard_sweep.py runs this program in pieces, with several versions of oneDNN.
//
// isa=default selects the best instruction set of the processor, or ONEDNN_MAX_CPU_ISA. A computation for which oneDNN
// has only slow reference code is skipped if it has more than `reference` multiply-adds. `convolutions` skips all other
// layers.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <sstream>
#include <stdexcept>

#include "tests/unit/trainer/backend/cpu/guarded/layers.h"
#include "trainer/nn/models.h"

namespace {

using namespace paceline::train;

std::vector<std::string> parts(const std::string& list) {
  std::vector<std::string> result;
  std::istringstream in(list);
  for (std::string part; std::getline(in, part, ',');) result.push_back(part);
  return result;
}

std::optional<dnnl::cpu_isa> isa_of(const std::string& name) {
  if (name == "default") return std::nullopt;
  using Isa = dnnl::cpu_isa;
  const std::map<std::string, Isa> known{
      {"SSE41", Isa::sse41}, {"AVX", Isa::avx}, {"AVX2", Isa::avx2}, {"AVX512_CORE", Isa::avx512_core}};
  if (const auto found = known.find(name); found != known.end()) return found->second;
  throw std::invalid_argument("isa=" + name);
}

}  // namespace

int main(int argc, char** argv) try {
  std::map<std::string, std::string> given{{"isa", "SSE41,AVX,AVX2,default"},
                                           {"models", ""},
                                           {"widths", "1,0.5,0.25,0.125,0.0625,0.3"},
                                           {"sizes", "8,16,31,32,40,48,64,96,128,224,256"},
                                           {"batches", "1,4"},
                                           {"threads", "1,2,3"},
                                           {"reference", "2e8"}};
  guarded::Check check;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const std::size_t equals = word.find('=');
    if (word == "convolutions") {
      check.convolutions_alone = true;
    } else if (equals != std::string::npos && given.contains(word.substr(0, equals))) {
      given[word.substr(0, equals)] = word.substr(equals + 1);
    } else {
      throw std::invalid_argument("what is '" + word + "'?");
    }
  }
  check.reference_limit = std::stod(given["reference"]);
  check.threads.clear();
  for (const std::string& threads : parts(given["threads"])) check.threads.push_back(std::stoi(threads));
  // In order of the cost, so that faults of small layers show early.
  for (const std::string& size : parts(given["sizes"])) {
    for (const std::string& width : parts(given["widths"])) {
      for (const std::string& batch : parts(given["batches"])) {
        for (const std::string& model : given["models"].empty() ? model_names() : parts(given["models"])) {
          for (const bool v1 : {false, true}) {
            ModelOptions options;
            options.name = model;
            options.image_size = std::stoi(size);
            options.width = std::stod(width);
            options.batch_size = std::stoi(batch);
            options.cifar_stem = options.image_size <= 64;  // as the trainer does
            options.resnet_v1 = v1;
            check.models.push_back(options);
          }
        }
      }
    }
  }
  std::size_t faults = 0;
  for (const std::string& isa : parts(given["isa"])) {
    check.isa = isa_of(isa);
    const auto begin = std::chrono::steady_clock::now();
    const auto seconds = [&] {
      return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    };
    double said = 0;
    check.progress = [&](const std::string& last, std::size_t runs) {
      if (seconds() < said + 30) return;
      said = seconds();
      std::printf("  %.0f s, %zu runs: %s\n", said, runs, last.c_str());
      std::fflush(stdout);
    };
    check.found = [](const std::string& fault) {
      std::printf("FAULT %s\n", fault.c_str());
      std::fflush(stdout);
    };
    const guarded::Result result = guarded::run(check);
    std::printf("oneDNN %d.%d, %s: %zu runs in %.0f s, %zu left out, %zu faults\n", DNNL_VERSION_MAJOR,
                DNNL_VERSION_MINOR, result.isa.c_str(), result.runs, seconds(), result.left_out, result.faults.size());
    for (const auto& [name, runs] : result.implementations) std::printf("  %-32s %zu\n", name.c_str(), runs);
    std::fflush(stdout);
    faults += result.faults.size();
  }
  return faults > 0 ? 1 : 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "guard_pages: %s\n", error.what());
  return 2;
}
