# SPDX-License-Identifier: Apache-2.0
# Sourced by samples: finds Paceline's programs, and lets Open MPI run in containers, as root and with more ranks than
# cores. PACELINE_BIN names the directory of the programs where they are not in build/release/bin or the PATH.
samples=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export PATH=${PACELINE_BIN:-${samples%/*}/build/release/bin}:$PATH
for program in paceline paceline-train mpirun python3; do
  if ! command -v "$program" >/dev/null; then
    echo "$(basename "$0"): there is no $program: run samples/quickstart.sh once, or name its directory in PACELINE_BIN" >&2
    exit 1
  fi
done
unset program
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_btl_vader_single_copy_mechanism=none
# Open MPI ends where its remote shell is missing, even if all ranks are on this host.
command -v ssh >/dev/null || export OMPI_MCA_plm_rsh_agent="${OMPI_MCA_plm_rsh_agent-}"
