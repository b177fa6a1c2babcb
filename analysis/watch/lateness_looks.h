// SPDX-License-Identifier: Apache-2.0
// When a running job is tested for late ranks, and at which level.
//
// Each look may name somebody by chance, so the looks share one level (alpha spending: K. K. G. Lan and D. L. DeMets,
// "Discrete sequential boundaries for clinical trials", Biometrika 70, 1983). Three quarters of it are kept for the
// look at the job that has ended, which sees most. Of the last quarter, look k spends 1/(k (k + 1)), which adds up to
// less than all of it, and a look comes when there are twice as many iterations as at the last one. A look at a run
// that is too short to be judged may name somebody, too, and so spends its part.
#pragma once

#include <cstdint>

#include "analysis/communication/lateness.h"

namespace paceline::analysis {

class LatenessLooks {
 public:
  // That a look takes into account, the last ones: 512 to 4,096, fewer of more ranks.
  static std::size_t most_iterations(std::size_t ranks);
  // The first iteration that a look at `finished` of them takes into account: those before are the warm-up, or old.
  static std::uint64_t first(std::uint64_t finished, std::size_t ranks);
  bool due(std::uint64_t finished) const { return finished >= next_; }
  // `table` has the iterations from first() to the last one. `ended`: the job has.
  LatenessTest look(const LatenessTable& table, std::uint64_t finished, bool ended);
  // The iterations are counted anew. What was spent stays spent.
  void count_anew() { next_ = 0; }

 private:
  std::uint64_t looks_ = 0, next_ = 0;  // so far, and the iterations that the next one needs
  bool kept_ = true;                    // what is for the end
};

}  // namespace paceline::analysis
