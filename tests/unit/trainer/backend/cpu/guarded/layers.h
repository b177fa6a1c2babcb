// Runs the CPU backend's computations, one by one, on memory between pages that nobody may touch: each argument,
// oneDNN's work memory among them, ends right at such a page in one run and begins right at one in another. A child
// process computes, so that a fault ends nothing but the child, and the next one goes on behind it.
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
  std::vector<ModelOptions> models;  // those that cannot be built, as VGG for odd sizes, are left out
  std::vector<int> threads{1};       // of OpenMP
  std::optional<dnnl::cpu_isa> isa;  // the most that oneDNN may use; else what ONEDNN_MAX_CPU_ISA says
  bool convolutions_alone = false;   // else pooling, batch norms, linear layers and copies between layouts too
  std::size_t largest = std::size_t{1} << 30;  // bytes of one tensor; computations with larger ones are left out
  double reference_limit = 2e8;                // multiply-adds, above which oneDNN's slow reference code is left out
  std::function<void(const std::string& last, std::size_t runs)> progress;  // now and then
  std::function<void(const std::string& fault)> found;                      // of each, as soon as it is seen
};

struct Result {
  std::vector<std::string> faults;  // which layer, computation and implementation, and what it touched
  std::size_t runs = 0, left_out = 0;
  std::map<std::string, std::size_t> implementations;  // oneDNN's names → runs
  std::string isa;                                     // that oneDNN took
};

// Equal computations run once. This process must not have started OpenMP's threads before.
Result run(const Check& check);

}  // namespace paceline::train::guarded
