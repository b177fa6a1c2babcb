# SPDX-License-Identifier: Apache-2.0
# Sourced by the trainer's tests. TRAIN is the program. The working directory is empty and is removed at the end.
set -euo pipefail
TRAIN=$1
export OMPI_MCA_mpi_yield_when_idle=1  # more ranks than cores, perhaps
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

fail() { echo "FAILED: $*" >&2; exit 1; }

# ranks N ARGS…: paceline-train on N ranks.
ranks() {
  local count=$1
  shift
  mpirun --bind-to none -n "$count" "$TRAIN" --threads 1 "$@"
}

# status N COMMAND…: the command ends with status N; its standard error is in the file stderr.
status() {
  local expected=$1 got=0
  shift
  "$@" >stdout 2>stderr || got=$?
  [ "$got" -eq "$expected" ] || fail "status $got, not $expected: $* ($(cat stderr))"
}

# says TEXT…: exactly one line on standard error, with all these texts.
says() {
  [ "$(wc -l <stderr)" -eq 1 ] || fail "not one line: $(cat stderr)"
  local text
  for text; do grep -qF -- "$text" stderr || fail "'$text' is missing in: $(cat stderr)"; done
}
