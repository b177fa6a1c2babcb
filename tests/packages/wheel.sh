#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the wheel, repairs it with auditwheel, adds the licences of the libraries in it, installs it into a new environment, records
# two ranks with the command line in it, reads the run with pandas, Polars, DuckDB and pyarrow, executes the notebook, records from
# within a script, and removes the package. The wheel stays in out/wheel, for debian_root.sh. PYTHONS names more interpreters that
# install and use the wheel, such as "python3.9 python3.13". Run by hand: it takes minutes and needs PyPI. Status 77: skipped.
set -euo pipefail
cd "$(dirname "$0")/../.."
command -v mpicc >/dev/null || { echo "wheel.sh: skipped: needs mpicc and mpirun"; exit 77; }
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
fail() { echo "wheel.sh: $*" >&2; exit 1; }
sources=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

python3 -m venv "$work/build"
"$work/build/bin/pip" install -q --only-binary=:all: --require-hashes -r tests/packages/wheel-requirements.txt
export CC=${CC:-cc} CXX=${CXX:-c++}  # and not those that Python was built with
PATH=$work/build/bin:$PATH "$work/build/bin/pip" wheel -q . --no-deps --no-build-isolation -C cmake.define.PACELINE_STATIC_LIBARCHIVE=ON -w "$work"
PATH=$work/build/bin:$PATH auditwheel repair "$work"/paceline-*.whl -w "$work/repaired" >"$work/log" 2>&1 ||
  fail "auditwheel: $(tail -5 "$work/log")"
"$work/build/bin/python" cmake/wheel/add_notices.py "$work"/repaired/*.whl libarchive-dev
"$work/build/bin/twine" check --strict "$work"/repaired/*.whl >"$work/log" || fail "twine: $(cat "$work/log")"
mkdir -p out/wheel && rm -f out/wheel/*.whl && cp "$work"/repaired/*.whl out/wheel/

mpicc -o "$work/late_rank" tests/packages/late_rank.c
cd "$work"
for python in ${PYTHONS:-}; do
  "$python" -m venv "$work/other"
  other/bin/pip install -q --no-index "$work"/repaired/*.whl
  [[ $(other/bin/paceline --version) == *$'\n'commit\ * ]] || fail "$python: paceline --version"
  mpirun --bind-to none -n 2 other/bin/paceline record -o run -- ./late_rank
  other/bin/python -c '
import paceline
run = paceline.load("run")
assert len(run.slices) > 0 and run.report().runs[0].ranks == 2
assert paceline.query(run, "SELECT rank FROM ranks").columns == ["rank"]
run.slices.__arrow_c_stream__()'
  printf '%s: installed and used\n' "$(other/bin/python -V)"
  rm -rf other run
done

python3 -m venv "$work/use"
"$work/use/bin/pip" install -q --only-binary=:all: --require-hashes -r "$sources/tests/python-requirements.txt"
"$work/use/bin/pip" install -q --no-index "$work"/repaired/*.whl
"$work/use/bin/pip" show -f paceline >"$work/files"
for notice in LICENSE cmake/debian/paceline.copyright third-party/libarchive-dev third-party/libsqlite3-0; do
  grep -q "licenses/$notice$" "$work/files" || fail "the wheel has no licenses/$notice"
done
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
info=$(use/bin/paceline info part)
[[ $info == *not*": outside"* ]] || fail "the time outside start() and stop() was recorded: $info"

use/bin/pip uninstall -q -y paceline
[ -z "$(find use -iname '*paceline*' -not -name '__pycache__')" ] || fail "files stay behind: $(find use -iname '*paceline*')"
echo "built, installed, used and removed"
