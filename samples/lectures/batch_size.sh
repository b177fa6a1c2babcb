#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The batch per rank against the allreduce's share of a step, on two ranks: the gradient is as large for any batch.
# usage: samples/lectures/batch_size.sh [quick|full|tiny] [OUTPUT]
source "$(dirname "$0")/common.sh"
read -ra batches <<<"$(of_size "2 8" "4 8 16 32 64" "4 8 16 32 64 128")"
make_data
runs=${#batches[@]}

for batch in "${batches[@]}"; do
  record "batch-$batch" 2 --iterations "$(of_size 3 10 20)" --eval-every 0
done

look="'of a step': twice the batch, about half the share. That is why large batches scale, and why the lectures then turn to
what large batches do to accuracy (samples/effects)."
report "${batches[@]/#/batch-}"
