#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Configures a build and prints only what Paceline itself has to say; all of it where that fails.
# usage: samples/configure.sh PRESET [CMAKE OPTION …]
set -euo pipefail
cd "$(dirname "$0")/.."
if ! said=$(cmake --preset "$@" 2>&1); then
  printf '%s\n' "$said" >&2
  exit 1
fi
grep '^-- Paceline' <<<"$said" || true
