#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks the form of the source: clang-format, ruff, shellcheck and the licences (reuse), and that each test is built.
# Changes nothing; --fix lets clang-format and ruff repair what they can. Takes about half a minute for the whole tree.
# usage: tests/style.sh [--fix]
set -euo pipefail
cd "$(dirname "$0")/.."
fix=${1:-}
[ -z "$fix" ] || [ "$fix" = --fix ] || { echo "usage: tests/style.sh [--fix]" >&2; exit 2; }

# ruff and reuse are not in Debian 12: an environment of their own, of fixed versions.
tools=build/deps/style
if [ ! -x $tools/bin/reuse ]; then
  rm -rf $tools
  python3 -m venv $tools && $tools/bin/pip install -q --require-hashes -r tests/style-requirements.txt
fi

status=0
check() {  # NAME COMMAND…
  local name=$1
  shift
  "$@" || { echo "style.sh: $name found faults" >&2; status=1; }
}
sources() { git ls-files -z --cached --others --exclude-standard -- "$@"; }

form=(--dry-run -Werror)
[ -z "$fix" ] || form=(-i)
check clang-format xargs -0 -n 40 -P "$(nproc)" clang-format "${form[@]}" < <(sources '*.cpp' '*.h' '*.c' '*.cu' '*.cuh')
check ruff $tools/bin/ruff check -q --no-cache ${fix:+--fix}
# Scripts that are sourced take variables from their callers (SC2154) and set some for them (SC2034).
check shellcheck xargs -0 shellcheck -s bash -S warning -e SC2034,SC2154 < <(sources '*.sh' .ci/run)
check reuse $tools/bin/reuse lint -q
unlicensed=$(sources '*.cpp' '*.h' '*.c' '*.cu' '*.cuh' '*.py' '*.sh' '*.cmake' '*CMakeLists.txt' ':!tests/data' |
  xargs -0 grep -L '^[/#]* SPDX.License.Identifier: Apache.2.0$' || true)
if [ -n "$unlicensed" ]; then
  printf 'style.sh: these files do not state the licence in their first line:\n%s\n' "$unlicensed" >&2
  status=1
fi
# A file that no CMakeLists.txt names would never fail.
while IFS= read -r -d '' test; do
  grep -rqF --include=CMakeLists.txt "${test##*/}" tests && continue
  echo "style.sh: $test is in no CMakeLists.txt of tests, so it is not built" >&2
  status=1
done < <(sources 'tests/*_test.cpp')
exit $status
