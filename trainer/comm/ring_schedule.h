// Who sends which chunk when, in a ring.
#pragma once

#include <vector>

namespace paceline::train {

struct RingStep {
  int send, receive;  // chunks, 0 to size − 1: sent to rank + 1, received from rank − 1
  bool add;           // reduce-scatter: to the own values; otherwise, in the allgather, in their place

  bool operator==(const RingStep&) const = default;
};

// The 2(p − 1) steps of `rank` (Patarasuk & Yuan, 2009, section 3): in step s of the reduce-scatter it sends chunk
// rank − s and adds to chunk rank − s − 1, modulo p; then it has the sums of chunk rank + 1, which the allgather
// carries round. What it sends in a step is what it received in the one before.
std::vector<RingStep> ring_schedule(int rank, int size);

}  // namespace paceline::train
