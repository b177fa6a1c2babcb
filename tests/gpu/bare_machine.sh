#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: bare_machine.sh KIT.tar.xz OUTPUT: tests/gpu.sh in a root that has glibc, the programs of Debian's essential packages, xz,
# CUDA's libraries if this machine has them, and nothing else: no Python, no Open MPI but the kit's. Ends with the status of
# gpu.sh; 77: skipped, because it needs root and a Debian.
set -euo pipefail
tests=$(realpath "$(dirname "$0")/..") kit=$(realpath "$1") output=$(realpath -m "$2")
if [ "$(id -u)" -ne 0 ] || ! unshare -m true 2>/dev/null || ! command -v dpkg-query >/dev/null || [ ! -L /bin ]; then
  echo "bare_machine.sh: skipped: needs root and Debian 12 or newer"
  exit 77
fi
root=$(mktemp -d)
trap 'rm -rf --one-file-system "$root"' EXIT
mkdir -p "$root"/{usr/local/cuda,tmp,proc,sys,dev,root,out,tests/bench} "$output"
cp -P /bin /sbin /lib /lib64 "$root/"
essential=$(dpkg-query -Wf '${Essential} ${Package}\n' | sed -n 's/^yes //p')
# shellcheck disable=SC2086
mapfile -t programs < <(dpkg -L xz-utils $essential | sed -n 's|^\(/usr\)\?/\(s\?bin/[^/]*\)$|/usr/\2|p' | sort -u)
{
  printf '%s\n' "${programs[@]}"
  dpkg -L libc6 | sed -n 's|^\(/usr\)\?/\(lib.*\.so.*\)|/usr/\2|p'
  { ldd "${programs[@]}" 2>/dev/null || true; } | grep -o '/[^ ]*\.so[^ ]*' | while read -r file; do
    file=${file/#\/lib/\/usr\/lib}
    printf '%s\n' "$file" "$(realpath "$file")"
  done
} | sort -u | while read -r file; do [ ! -f "$file" ] || echo "${file#/}"; done | tar -C / -c --files-from=- | tar -C "$root" -x
cp -R "$tests/gpu.sh" "$tests/gpu" "$root/tests/"
cp "$tests"/bench/*.py "$root/tests/bench/"
cp "$kit" "$root/kit.tar.xz"

# A mount namespace of its own: what is mounted goes away with it.
# shellcheck disable=SC2016
unshare -m bash -c '
  mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" && mount --rbind /sys "$0/sys" && mount --bind "$1" "$0/out" &&
    { [ ! -d /usr/local/cuda ] || mount --bind /usr/local/cuda "$0/usr/local/cuda"; } &&
    exec env -i PATH=/usr/sbin:/usr/bin HOME=/root chroot "$0" bash /tests/gpu.sh /kit.tar.xz /out' "$root" "$output"
