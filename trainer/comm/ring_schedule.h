// SPDX-License-Identifier: Apache-2.0
// The schedule of a ring: which rank sends which chunk in which step.
#pragma once

#include <vector>

namespace paceline::train {

struct RingStep {
  int send, receive;  // chunks, 0 to size − 1: sent to rank + 1, received from rank − 1
  bool add;           // reduce-scatter: add the received chunk to the own values; allgather: replace them

  bool operator==(const RingStep&) const = default;
};

// The 2(p − 1) steps of `rank` (Patarasuk & Yuan, 2009, section 3): in step s of the reduce-scatter it sends chunk rank
// − s and adds to chunk rank − s − 1, modulo p; then it has the sums of chunk rank + 1, which the allgather passes
// round the ring. In each step it sends the chunk that it received in the step before.
std::vector<RingStep> ring_schedule(int rank, int size);

}  // namespace paceline::train
