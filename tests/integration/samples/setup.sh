# SPDX-License-Identifier: Apache-2.0
# Sourced: PACELINE_BIN has the programs, $samples is the folder, the working directory is empty and goes away at the end.
set -euo pipefail
export PACELINE_BIN=$1
export PATH=$PACELINE_BIN:$PATH OMPI_MCA_mpi_yield_when_idle=1  # more ranks than cores, perhaps
samples=$(realpath "$(dirname "$0")/../../../samples")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

fail() { echo "FAILED: $*" >&2; exit 1; }

# quietly COMMAND…: what it says is shown only if it fails; it is in the file `said`.
quietly() { "$@" >said 2>&1 || fail "status $?: $*: $(cat said)"; }
