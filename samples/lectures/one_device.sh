#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# One device: what a training step consists of, before anything is parallel.
# usage: samples/lectures/one_device.sh [quick|full|tiny] [OUTPUT]
source "$(dirname "$0")/common.sh"
make_data

record 1-rank 1 --epochs "$epochs"

look="'What shrinks when ranks are added'. Forward, backward and preprocess are divided among ranks; start-up stays.
The share that stays is the s of Amdahl's law: N ranks are at most 1/s times as fast."
report 1-rank
