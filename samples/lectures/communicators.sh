#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The communicators against each other on 2 × 2 ranks: the allreduce alone, and in training.
# Nodes as in two_nodes.sh; without root all four ranks are on this host, and the report's hosts tell it.
# usage: samples/lectures/communicators.sh [quick|full|tiny] [OUTPUT]
source "$(dirname "$0")/common.sh"
nodes=("$samples/two_nodes/nodes.sh" --rate "${RATE:-unlimited}")
if [ -z "${MPIRUN:-}" ] && "${nodes[@]}" true 2>/dev/null; then launch=("${nodes[@]}" "${launch[@]}"); fi
all="mpi naive flat hierarchical two_dimensional non_cuda_aware ring halving_doubling three_phase"
read -ra communicators <<<"$(of_size "mpi hierarchical" "$all" "$all")"
batch=$(of_size 4 4 32) width=$(of_size 0.125 0.5 1)
make_data
runs=${#communicators[@]}

printf '\n== The allreduce alone\n'
"${launch[@]}" -n 4 paceline-train bench-allreduce --sizes "$(of_size 64K 64K,8M 64K,8M,64M)" --iterations "$(of_size 2 5 20)" |
  tee "$output/allreduce.txt"
for communicator in "${communicators[@]}"; do
  record "$communicator" 4 --iterations "$(of_size 2 8 40)" --eval-every 0 --communicator "$communicator"
done

look="'communication ms': the same bytes in each run, so the algorithm and the network make the difference. naive calls once a
parameter and pays the latency each time; hierarchical and three_phase send each byte between the nodes once a node, not
once a rank: RATE=1gbit shows it. In 'Collectives' of report.txt waiting and transfer stand apart."
report "${communicators[@]}"
