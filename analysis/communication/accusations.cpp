// SPDX-License-Identifier: Apache-2.0
#include "analysis/communication/accusations.h"

#include <algorithm>
#include <vector>

namespace paceline::analysis {

void correct_for_all(std::span<const Accuser> accusers, double level) {
  struct Accusation {
    double* p;
    double alone, weight;
    double needed() const { return alone / weight; }
  };
  std::vector<Accusation> accusations;
  double left = 0;
  for (const Accuser& accuser : accusers) {
    if (accuser.late != nullptr && (accuser.late->judged || !accuser.late->late.empty())) {
      left += accuser.weight;
      for (LateRank& late : accuser.late->late) {
        accusations.push_back({&late.p, late.p_alone,
                               accuser.weight / static_cast<double>(std::max<std::size_t>(accuser.late->tests, 1))});
      }
    }
    if (accuser.change != nullptr && accuser.change->judged) {
      left += accuser.weight;
      if (auto& change = accuser.change->change) accusations.push_back({&change->p, change->p_alone, accuser.weight});
    }
  }
  std::ranges::stable_sort(accusations, {}, &Accusation::needed);
  double p = 0;
  for (const Accusation& accusation : accusations) {
    p = std::max(p, accusation.needed() * left);
    *accusation.p = std::min(p, 1.0);
    left -= accusation.weight;
  }
  for (const Accuser& accuser : accusers) {
    if (accuser.late != nullptr)
      std::erase_if(accuser.late->late, [&](const LateRank& late) { return late.p > level; });
    if (accuser.change != nullptr && accuser.change->change && accuser.change->change->p > level) {
      accuser.change->change.reset();
    }
  }
}

}  // namespace paceline::analysis
