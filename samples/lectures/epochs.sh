#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# 4 epochs against 50, on one and on two ranks: what is spent once weighs less in a long run.
# usage: samples/lectures/epochs.sh [quick|full|tiny] [OUTPUT]
source "$(dirname "$0")/common.sh"
images=$(of_size 64 256 2500)
short=$(of_size 1 2 4) long=$(of_size 3 10 50)
make_data
runs=4

for ranks in 1 2; do
  for epochs in "$short" "$long"; do
    record "$ranks-ranks-$epochs-epochs" "$ranks" --epochs "$epochs" --eval-every 0
  done
done

look="S(2) of the $short epochs beside S(2) of the $long, and 'Time model': T = fixed + epochs × epoch. The lecture's two GPUs
were 1.69 times as fast in 4 epochs and 1.84 times in 50. 'S of long runs' is what is left when the fixed part is nothing."
report {1,2}-ranks-"$short"-epochs {1,2}-ranks-"$long"-epochs
