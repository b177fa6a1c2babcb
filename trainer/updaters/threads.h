// How many threads a rank computes with.
#pragma once

namespace paceline::train {

// Sets it for OpenMP, which oneDNN computes with. 0: OMP_NUM_THREADS where it is set, else an even share of the host's
// cores, within those that the launcher bound this rank to. Returns the number.
// Throws Error (usage) for far more than there are cores.
int set_threads(int threads, int ranks_on_host);

}  // namespace paceline::train
