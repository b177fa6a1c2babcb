#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Two nodes of two ranks each, with the lectures' communicator: sums inside each node, then between the nodes.
# The nodes are those of MPIRUN="mpirun --host a:2,b:2" (one file system, the same paths), else two network namespaces of
# this machine (root), RATE=1gbit apart if it is given.
# usage: samples/lectures/two_nodes.sh [quick|full|tiny] [OUTPUT]
source "$(dirname "$0")/common.sh"
[ -n "${MPIRUN:-}" ] || launch=("$samples/two_nodes/nodes.sh" --rate "${RATE:-unlimited}" "${launch[@]}")
make_data
runs=3

record 1-rank 1 --epochs "$epochs" --communicator hierarchical
record 2-one-node 2 --epochs "$epochs" --communicator hierarchical
record 4-two-nodes 4 --epochs "$epochs" --communicator hierarchical

look="S(4) beside S(2): four GPUs of two nodes were 3.35 times as fast as one in the lecture, two of one node 1.69 times.
Where four ranks share fewer than four cores S(4) stays at S(2): the report says so, and the curve tells nothing more."
report 1-rank 2-one-node 4-two-nodes
