// SPDX-License-Identifier: Apache-2.0
// The table of the allreduce algorithms over NCCL. Each row's make_NAME() is in gpu/, in the file of that name or in
// the one that the comment names. It does not need CUDA.
#pragma once

// One row for each algorithm: its name, and what --help prints about it if no algorithm on host memory has that name.
#define PACELINE_NCCL_ALGORITHMS(ROW)                                                        \
  ROW(pure_nccl, "NCCL's allreduce over all ranks, one GPU each")                            \
  ROW(single_node, "pure_nccl; an error on more than one host") /* pure_nccl.cpp */          \
  ROW(hierarchical, "NCCL's sum in each host, leaders exchange slices, NCCL's broadcast")    \
  ROW(two_dimensional, "NCCL's slices in each host, then between ranks of equal local rank") \
  ROW(non_cuda_aware, "hierarchical, with MPI between hosts through pinned host memory")
