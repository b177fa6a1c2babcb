// SPDX-License-Identifier: Apache-2.0
#pragma once
// Tests that repeat themselves take fewer rounds under sanitizers, which make a program ten times as slow: the
// optimised build counts cases, the sanitized one looks for wrong accesses, and finds them in the first rounds.
#include <cstddef>

namespace paceline::test {

// The step from one round to the next: 1, or `sanitized` in programs with sanitizers.
constexpr std::size_t stride([[maybe_unused]] std::size_t sanitized) {
#ifdef PACELINE_SANITIZED
  return sanitized;
#else
  return 1;
#endif
}

}  // namespace paceline::test
