#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs a command on the first of two "nodes" of this machine: network namespaces with host names of their own, joined
# by a pair of virtual interfaces. An mpirun in it starts its ranks on both, two and two, and Open MPI sends over TCP.
# usage: nodes.sh [--rate RATE [--burst SIZE]] COMMAND…
#   --rate RATE   of the network, each way: 1gbit, 100mbit, … as tc has it; unlimited, if not given: as fast as memory
#   --burst SIZE  that may pass at once: 256kb if not given. With 16kb, short transfers have the rate as well
# Ends as the command does; with 77 where namespaces cannot be made (it needs root, and Debian's iproute2).
set -euo pipefail

if [ "${1:-}" = --on ]; then  # as mpirun's remote shell: --on NODE ADDRESS COMMAND
  node=$2
  shift 3
  exec ip netns exec "$node" unshare --uts sh -c 'hostname "$0" && exec sh -c "$1"' "$node" "$*"
fi
rate=unlimited burst=256kb
if [ "${1:-}" = --rate ]; then
  rate=${2:-}
  shift 2
fi
if [ "${1:-}" = --burst ]; then
  burst=${2:-}
  shift 2
fi

a=pl$$a b=pl$$b
network=10.213.7
hosts=$(mktemp)
clean_up() {
  trap '' INT TERM HUP  # `timeout` sends two signals: the second must not end this
  ip netns del $a 2>/dev/null || true
  ip netns del $b 2>/dev/null || true
  rm -f "$hosts"
}
trap clean_up EXIT
if ! ip netns add $a 2>/dev/null || ! ip netns add $b || ! ip link add $a netns $a type veth peer name $b netns $b ||
   ! ip netns exec $a true 2>/dev/null; then
  echo "nodes.sh: network namespaces cannot be made here: it needs root, and iproute2" >&2
  exit 77
fi
ip -n $a addr add $network.1/24 dev $a
ip -n $b addr add $network.2/24 dev $b
for node in $a $b; do
  ip -n $node link set lo up
  ip -n $node link set $node up
  # A token bucket, as a shaped cloud network has it. What waits longer than 50 ms is dropped.
  if [ "$rate" != unlimited ] && ! tc -n $node qdisc add dev $node root tbf rate "$rate" burst "$burst" latency 50ms; then
    echo "nodes.sh: --rate $rate --burst $burst: tc takes no such rate here; write them like 1gbit and 256kb" >&2
    exit 2
  fi
done
printf '%s slots=2\n' $network.1 $network.2 >"$hosts"

self=$(realpath "$0")
export OMPI_MCA_orte_default_hostfile=$hosts OMPI_MCA_plm_rsh_agent="$self --on $b"
export OMPI_MCA_btl_tcp_if_include=$network.0/24 OMPI_MCA_oob_tcp_if_include=$network.0/24
status=0
ip netns exec $a unshare --uts sh -c 'hostname "$0" && exec "$@"' $a "$@" || status=$?
exit $status
