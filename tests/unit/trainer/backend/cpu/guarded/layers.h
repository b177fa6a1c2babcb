// SPDX-License-Identifier: Apache-2.0
// Runs the CPU backend's computations one by one on memory between inaccessible pages. Each argument, including
// oneDNN's work memory, ends at such a page in one run and begins at one in another. A child process computes, so that
// a fault ends only the child, and the next child goes on after it.
#pragma once

#include <cstddef>
#include <dnnl.hpp>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "trainer/nn/model.h"

namespace paceline::train::guarded {

struct Check {
  std::vector<ModelOptions> models;  // models that cannot be built, such as VGG for odd sizes, are left out
  std::vector<int> threads{1};       // of OpenMP
  std::optional<dnnl::cpu_isa>
      isa;  // the largest instruction set that oneDNN may use; by default that of ONEDNN_MAX_CPU_ISA
  bool convolutions_alone = false;  // false: pooling, batch norms, linear layers and copies between layouts too
  std::size_t largest = std::size_t{1} << 30;  // bytes of one tensor; computations with larger ones are left out
  double reference_limit = 2e8;                // multiply-adds, above which oneDNN's slow reference code is left out
  std::function<void(const std::string& last, std::size_t runs)> progress;  // called from time to time
  std::function<void(const std::string& fault)> found;                      // called for each fault at once
};

struct Result {
  std::vector<std::string> faults;  // the layer, computation, implementation and accessed argument of each
  std::size_t runs = 0, left_out = 0;
  std::map<std::string, std::size_t> implementations;  // oneDNN's names → runs
  std::string isa;                                     // that oneDNN used
};

// Equal computations run once. This process must not have started OpenMP's threads before.
Result run(const Check& check);

}  // namespace paceline::train::guarded
