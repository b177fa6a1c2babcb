#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: debian_root.sh FOLDER [SUITE]      default: bookworm
# Installs the Debian packages or the wheel of FOLDER, or both, in a bare Debian, uses them (in_root.sh), removes them and looks for
# files that stay behind. It needs root, debootstrap and the network. Status 77: skipped, also if FOLDER holds neither. The bare
# Debian is kept in out/debian-SUITE.tar and used again.
set -euo pipefail
packages=$(realpath -m "$1") suite=${2:-bookworm}
cd "$(dirname "$0")/../.."
if [ "$(id -u)" -ne 0 ] || ! command -v debootstrap >/dev/null; then
  echo "debian_root.sh: skipped: needs root and debootstrap (apt-get install debootstrap)"
  exit 77
fi
fail() { echo "debian_root.sh: $*" >&2; exit 1; }

if ! ls "$packages"/*.deb >/dev/null 2>&1 && ! ls "$packages"/*.whl >/dev/null 2>&1; then
  echo "debian_root.sh: skipped: $packages holds no package and no wheel"
  exit 77
fi
archive=$PWD/out/debian-$suite.tar
root=$(mktemp -d)
if [ ! -e "$archive" ]; then
  mkdir -p out
  debootstrap --variant=minbase "$suite" "$root" "${MIRROR:-http://deb.debian.org/debian}" >"$root.log" 2>&1 ||
    fail "debootstrap failed: $(tail -3 "$root.log")"
  tar -C "$root" -cf "$archive.part" . && mv "$archive.part" "$archive"
else
  tar -C "$root" -xf "$archive"
fi
chmod 755 "$root"  # for users without rights
mkdir "$root/packages"
find "$packages" -maxdepth 1 \( -name '*.deb' -o -name '*.whl' \) -exec cp -t "$root/packages" {} +
cp /etc/resolv.conf "$root/etc/resolv.conf"
cp tests/packages/in_root.sh "$root/in_root.sh"
cp -r samples "$root/samples"
cp tests/data/format-1/closed.pace "$root/packages/"

# A mount namespace of its own: /proc and /dev/shm go away with the script.
status=0
unshare --mount --fork bash -c '
  mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" && mount -t tmpfs tmpfs "$0/dev/shm" 2>/dev/null
  exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root DEBIAN_FRONTEND=noninteractive chroot "$0" bash /in_root.sh' \
  "$root" || status=$?
[ ! -e "$root/tmp/viewer.png" ] || cp "$root/tmp/viewer.png" out/viewer-of-package.png
rm -rf --one-file-system "$root" "$root.log"
exit $status
