#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `paceline whatif` against the trainer: the step time predicted from a run with a slow rank, for that rank relieved, is the
# one that a run without the delay takes, in which the other rank's loader decides. Both delays are sleeps, ten times as long
# as the rest of a step, so a busy machine does not matter. The prediction may be off by half of what the delay changes:
# that the step stays as it is fails, and so does that it shrinks by the whole delay.
# usage: predictions.sh paceline-train paceline
set -euo pipefail
python3 -B "$(dirname "$0")/../../bench/closed_loop.py" "$2" "$1" --rounds 1 --iterations 16 --busy slow-rank
