#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Two devices of one host, in the two ways of the lectures: a main rank that collects gradients, updates and sends the
# weights out (Chainer's MultiprocessParallelUpdater), and an allreduce after which every rank updates (ChainerMN).
# usage: samples/lectures/two_devices.sh [quick|full|tiny] [OUTPUT]
source "$(dirname "$0")/common.sh"
make_data
runs=3

record 1-rank 1 --epochs "$epochs"
record 2-main_rank 2 --epochs "$epochs" --updater main_rank
record 2-allreduce 2 --epochs "$epochs"

look="S(2) of both against 2, and 'What keeps the speed-up from N'. Two GPUs in the lecture were 1.69 times as fast as one.
In 2-main_rank, 'Who waits for whom' in report.txt: rank 1 waits while rank 0 alone takes the step."
report 1-rank 2-main_rank 2-allreduce
