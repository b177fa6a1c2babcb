#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing, builds everything and runs all tests. At the end are the minutes of each stage, the slowest tests, why tests
# were skipped, and in the last line the tests of all presets: N passed, N failed, N skipped.
# usage: tests/run.sh [STAGE…]        default: style release long asan
#   style         the form of the source: clang-format, ruff, shellcheck, licences
#   release       the optimised build and its tests, but for the long ones
#   long          the tests of the release build that take longest: gradients, updaters, file formats, every command of the documents
#   asan          recorder and analysis again by clang under AddressSanitizer and UndefinedBehaviorSanitizer: what needs no window
#                 and no other program, with a fuzzer for each reader of files
#   asan-trainer  the same with the trainer
#   tsan          the same as asan under ThreadSanitizer
#   fuzz          each fuzzer for 30 s, with other inputs each time
#   coverage      the share of lines of analysis and recorder that their test programs run (gcov), by folder in build/coverage/coverage.txt
#   tidy          clang-tidy on the files that changed last (tests/tidy.sh)
#   asan-viewer   the viewer and its tests under AddressSanitizer and UndefinedBehaviorSanitizer, without a screen
#   docs          the documents as a site (samples/docs.sh); it needs the release build, Doxygen and PyPI
#   packages      Debian packages and the wheel, built, and used in a bare Debian
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- style release long asan

samples/setup.sh --tests
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_btl_vader_single_copy_mechanism=none OMPI_MCA_plm_rsh_agent=""
export QT_QPA_PLATFORM=offscreen
export GTEST_COLOR=no  # under mpirun the output is a terminal, and tally.py reads it

results=() failed=() times=()

long='^(samples_(documents|quickstart)|gpu_kit_without_a_gpu_test|Sampling.ReadsThePythonStacksOfEachVersion|'
long+='trainer_(gradients|updaters|folders|weights|resume|finetune|errors|torchvision|cpu_model_test))$'

# Tests wait now and then, so one more than there are cores run at once. The whole output of the programs goes to the file: tally.py
# reads GoogleTest's summaries in it.
run_tests() {
  local folder=$1 results_file=$2
  results+=("$folder/$results_file")
  rm -f "$folder/$results_file"
  ctest --test-dir "$folder" --output-on-failure -j $(($(nproc) + 1)) --output-junit "$results_file" "${@:3}" \
    --test-output-size-passed 1000000 --test-output-size-failed 1000000 --test-output-truncation head
}

# build PRESET TRAINER VIEWER [TARGET…]: each part ON or OFF. The viewer reads files through the analysis alone, which the sanitized
# builds test.
build() {
  samples/configure.sh "$1" -DPACELINE_TESTS=ON -DPACELINE_TRAINER="$2" -DPACELINE_VIEWER="$3" &&
    cmake --build --preset "$1" ${4:+--target "${@:4}"} && printf '\n== %s: tests\n' "$1"
}

packages() {
  cmake --workflow --preset packages &&
    tests/packages/debian_root.sh build/release/packages &&
    tests/packages/wheel.sh &&
    tests/packages/debian_root.sh out/wheel
}

coverage() {
  samples/configure.sh coverage -DPACELINE_TESTS=ON -DPACELINE_TRAINER=OFF -DPACELINE_VIEWER=OFF -DPACELINE_CUDA=OFF || return 1
  local programs program status=0
  mapfile -t programs < <(ninja -C build/coverage -t targets all | grep -oE '^test_(analysis|profiler)_[a-z_]+' | sort -u)
  cmake --build --preset coverage --target paceline "${programs[@]}" || return 1
  find build/coverage -name '*.gcda' -delete
  for program in "${programs[@]}"; do
    "build/coverage/tests/$program" --gtest_brief=1 || status=1
  done
  gcovr --root . --filter analysis/ --filter profiler/ --gcov-ignore-parse-errors --txt build/coverage/coverage.txt \
    --print-summary build/coverage || status=1
  return $status
}

for stage in "$@"; do
  printf '\n== %s\n' "$stage"
  begin=$SECONDS
  case $stage in
    release) build release ON ON && run_tests build/release tests.xml -E "$long" ;;
    long) build release ON ON && run_tests build/release long.xml -R "$long" ;;
    asan | tsan) build "$stage" OFF OFF && run_tests "build/$stage" tests.xml ;;
    asan-trainer) build asan ON OFF && run_tests build/asan tests.xml ;;
    asan-viewer)
      build asan OFF ON test_viewer_time test_viewer_window test_viewer_program && run_tests build/asan/tests/unit/viewer tests.xml
      ;;
    docs) samples/docs.sh ;;
    style | tidy) "tests/$stage.sh" ;;
    fuzz) tests/fuzz/run.sh 30 ;;
    packages | coverage) "$stage" ;;
    *) echo "run.sh: unknown stage '$stage'" >&2; exit 2 ;;
  esac || failed+=("$stage")
  times+=("$(printf '%-14s %3d min %2d s' "$stage" $(((SECONDS - begin) / 60)) $(((SECONDS - begin) % 60)))")
done
printf '\nMinutes of each stage:\n'
printf '%s\n' "${times[@]}"
if [ ${#failed[@]} -gt 0 ]; then echo "Failed: ${failed[*]}" >&2; fi
[ ${#results[@]} -eq 0 ] || tests/tally.py "${results[@]}"
[ ${#failed[@]} -eq 0 ]
