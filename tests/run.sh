#!/usr/bin/env bash
# Installs what is missing, builds everything and runs all tests: optimised, then what does not need a window or another
# program again by clang under AddressSanitizer and UndefinedBehaviorSanitizer, with a fuzzer for each reader of files.
# The last line counts the tests of all presets: N passed, N failed, N skipped.
# usage: tests/run.sh [release|asan|tsan …]        default: release asan; asan is without the trainer then, to save minutes
set -euo pipefail
cd "$(dirname "$0")/.."
sanitized_trainer=ON
[ $# -gt 0 ] || { set -- release asan; sanitized_trainer=OFF; }

samples/setup.sh --tests
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_btl_vader_single_copy_mechanism=none OMPI_MCA_plm_rsh_agent=""
export QT_QPA_PLATFORM=offscreen

results=() failed=()
for preset in "$@"; do
  printf '\n== %s: build\n' "$preset"
  viewer=ON trainer=ON  # the viewer reads files through the analysis alone, which the sanitized builds test
  [ "$preset" = release ] || viewer=OFF trainer=$sanitized_trainer
  samples/configure.sh "$preset" -DPACELINE_TESTS=ON -DPACELINE_TRAINER=$trainer -DPACELINE_VIEWER=$viewer
  cmake --build --preset "$preset"
  printf '\n== %s: tests\n' "$preset"
  results+=("build/$preset/tests.xml")
  rm -f "build/$preset/tests.xml"
  # Tests wait now and then, so one more than there are cores run at once. The whole output of the programs goes to the
  # file: tally.py reads GoogleTest's summaries in it.
  ctest --test-dir "build/$preset" --output-on-failure -j $(($(nproc) + 1)) --output-junit tests.xml \
    --test-output-size-passed 1000000 --test-output-size-failed 1000000 --test-output-truncation head ||
    failed+=("$preset")
done
if [ ${#failed[@]} -gt 0 ]; then echo "Failed: ${failed[*]}" >&2; fi
tests/tally.py "${results[@]}"
[ ${#failed[@]} -eq 0 ]
