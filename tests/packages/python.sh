#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: python.sh BUILD-DIRECTORY PYTHON LATE-RANK-PROGRAM
# Records a run of two ranks and reads it with the Python package of the build tree.
set -euo pipefail
sources=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mpirun --bind-to none -n 2 "$1/bin/paceline" record -o "$work/run2" -- "$3"
PATH=$1/bin:$PATH PYTHONPATH=$1/python "$2" "$sources/tests/packages/python_test.py" "$work/run2" "$sources/samples/python/slowest_rank.ipynb"
