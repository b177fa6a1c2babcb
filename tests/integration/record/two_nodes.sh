#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: two_nodes.sh COMMAND…       runs it on the first of two nodes of this machine, as samples/two_nodes/nodes.sh does
exec "$(dirname "$0")/../../../samples/two_nodes/nodes.sh" "$@"
