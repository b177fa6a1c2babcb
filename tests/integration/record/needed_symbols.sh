#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The libraries that are loaded into programs must load on old systems: nothing younger than glibc 2.28 (RHEL 8), no
# C++ runtime, no library but glibc's.
# usage: needed_symbols.sh DIRECTORY      looks at libpaceline-{inject,cupti,nccl}.so there, those that are built
set -euo pipefail
export LC_ALL=C
youngest=2.28
failed=0 seen=0
for library in "$1"/libpaceline-{inject,cupti,nccl}.so; do
  [ -e "$library" ] || continue
  seen=$((seen + 1))
  name=$(basename "$library")
  needs=$(objdump -p "$library" | awk '$1 == "NEEDED" {print $2}')
  if others=$(grep -vE '^(libc|libm|libdl|libpthread|librt)\.so\.|^ld-linux' <<<"$needs"); then
    echo "$name needs $(tr '\n' ' ' <<<"$others")"
    failed=1
  fi
  # Symbols by the version they need; what it defines itself has none.
  symbols=$(objdump -T "$library" | awk '/\*UND\*/ {for (i = 1; i <= NF; ++i) if ($i ~ /^\(?[A-Z]+_[0-9]/) print $i, $NF}' |
    tr -d '()')
  oldest_that_will_do=0
  while read -r version symbol; do
    number=${version#*_}
    case $version in
      GLIBC_*) ;;
      *) echo "$name: $symbol needs $version"; failed=1; continue ;;
    esac
    if [ "$(printf '%s\n%s\n' "$number" $youngest | sort -V | tail -1)" != $youngest ]; then
      echo "$name: $symbol needs glibc $number; see profiler/inject/system/old_glibc.cpp"
      failed=1
    fi
    oldest_that_will_do=$(printf '%s\n%s\n' "$number" "$oldest_that_will_do" | sort -V | tail -1)
  done <<<"$symbols"
  [ "$oldest_that_will_do" != 0 ] || { echo "$name: objdump shows no versions"; failed=1; }
  # Functions of libpthread and libdl under old tags are in libraries of their own there.
  for library_then in libpthread.so.0 libdl.so.2; do
    grep -q "^$library_then$" <<<"$needs" || { echo "$name does not name $library_then as needed"; failed=1; }
  done
  echo "$name: glibc $oldest_that_will_do; needs $(tr '\n' ' ' <<<"$needs")"
done
[ $seen -gt 0 ] || { echo "no library in $1"; failed=1; }
exit $failed
