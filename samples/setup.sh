#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what Paceline needs on Debian and Ubuntu, and nothing that is there already.
# usage: samples/setup.sh [--tests] [--onednn]
#   --tests    adds what only the tests need
#   --onednn   oneDNN 3.2 from PyPI for this folder's builds (39 MB), which bf16 needs; done unasked where the processor
#              has AVX512-BF16 or AMX
# Needs root, or sudo. Other systems: install the counterparts of the packages listed here.
set -euo pipefail
cd "$(dirname "$0")/.."

packages=(build-essential cmake ninja-build pkg-config ccache ca-certificates
          libcli11-dev libfmt-dev nlohmann-json3-dev libzstd-dev libxxhash-dev libjs-chart.js
          libdnnl-dev libopenmpi-dev openmpi-bin libtomlplusplus-dev libjpeg-dev libpng-dev libwebp-dev
          libsimdjson-dev libsqlite3-dev zlib1g-dev libarchive-dev libopen-trace-format2-dev libflatbuffers-dev
          qt6-base-dev qt6-svg-dev qt6-qpa-plugins fonts-dejavu-core python3-pip)
onednn=unasked tests=no
for option; do
  case $option in
    # MPICH stays beside Open MPI: Debian's mpicc and mpirun go on meaning the latter, whose priority is higher.
    --tests)
      tests=yes
      packages+=(git libgtest-dev libgmock-dev libbenchmark-dev python3-venv faketime python3-mpi4py python3-jsonschema gfortran iproute2
                 bubblewrap clang-format shellcheck clang-16 clang-tidy-16 libclang-rt-16-dev lld-16 gcovr libmpich-dev mpich
                 libbz2-dev liblzma-dev nettle-dev libseccomp-dev musl-tools netpipe-openmpi hpcc otf2-tools python3-torch protobuf-compiler doxygen) ;;
    --onednn) onednn=asked ;;
    *)
      echo "setup.sh: unknown option '$option'; there are --tests and --onednn" >&2
      exit 2 ;;
  esac
done

as_root() {
  if [ "$(id -u)" -eq 0 ]; then "$@"
  elif command -v sudo >/dev/null; then sudo "$@"
  else echo "setup.sh: needs root to run: $*" >&2; exit 1
  fi
}

if ! command -v dpkg-query >/dev/null; then
  echo "setup.sh: this is not Debian or Ubuntu; install the counterparts of: ${packages[*]}" >&2
  exit 1
fi

missing=()
for package in "${packages[@]}"; do
  status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$status" = installed ] || missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ]; then
  echo "Installing ${#missing[@]} Debian packages: ${missing[*]}"
  as_root apt-get update -qq
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi

# Debian has no package of what the tests of the Python package and of Arrow exports read tables with: an environment of its own.
if [ $tests = yes ] && [ ! -x build/deps/python/bin/python3 ]; then
  echo "Fetching pyarrow, pandas, Polars and others (PyPI)"
  rm -rf build/deps/python.part
  python3 -m venv build/deps/python.part &&
    build/deps/python.part/bin/pip install -q --only-binary=:all: --require-hashes -r tests/python-requirements.txt &&
    mv build/deps/python.part build/deps/python ||
    echo "setup.sh: pyarrow and others were not fetched: tests of tables in Python will be skipped" >&2
fi

# The NVTX 3 headers: the CUDA toolkit's where there is one, else those of PyPI's package, unpacked beside the build.
nvtx=13.5.25
nvtx_hash=f72f21bd338c531afb3f802d03c569e9f7c324739ac332c672a431734d0b5c41
have_nvtx() {
  local folder
  for folder in "${NVTX_HOME:-}" "${CUDA_HOME:-}" /usr/local/cuda /usr "$PWD/build/deps/nvtx"; do
    [ -n "$folder" ] && [ -e "$folder/include/nvtx3/nvToolsExt.h" ] && return 0
  done
  return 1
}
# unpack FOLDER TARGET: what the one wheel in FOLDER has under include/ goes to TARGET/include.
unpack() {
  python3 - "$@" <<'PY'
import pathlib, sys, zipfile
wheel = next(pathlib.Path(sys.argv[1]).glob("*.whl"))
target = pathlib.Path(sys.argv[2]) / "include"
with zipfile.ZipFile(wheel) as archive:
    for name in archive.namelist():
        before, found, after = ("/" + name).partition("/include/")
        if found and after and not name.endswith("/"):
            file = target / after
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(archive.read(name))
PY
}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
if ! have_nvtx; then
  echo "Fetching the NVTX headers (PyPI: nvidia-nvtx $nvtx)"
  echo "nvidia-nvtx==$nvtx --hash=sha256:$nvtx_hash" > "$folder/nvtx.txt"
  python3 -m pip download -q --no-deps --only-binary=:all: --platform manylinux_2_17_x86_64 --require-hashes \
    -d "$folder/nvtx" -r "$folder/nvtx.txt"
  unpack "$folder/nvtx" build/deps/nvtx
  have_nvtx || { echo "setup.sh: PyPI's nvidia-nvtx holds no nvtx3/nvToolsExt.h; set NVTX_HOME to a folder with include/nvtx3" >&2; exit 1; }
fi

# Where there is a CUDA compiler: cuDNN's C++ headers, of which Debian and NVIDIA's repository have no package. The wheel
# is Python's, and its headers are all that is used: one wheel, whatever the Python here.
frontend=1.32.0
frontend_hash=c6006556017a4d1c914c52a556c71b1267f2d6a0500f742e7b4edef539878df0
have_nvcc() { command -v nvcc >/dev/null || [ -x "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc" ]; }
have_frontend() {
  local folder
  for folder in "${CUDNN_FRONTEND_HOME:-}" /usr /usr/local "$PWD/build/deps/cudnn-frontend"; do
    [ -n "$folder" ] && [ -e "$folder/include/cudnn_frontend.h" ] && return 0
  done
  return 1
}
if have_nvcc && ! have_frontend; then
  echo "Fetching cuDNN's C++ headers (PyPI: nvidia-cudnn-frontend $frontend)"
  echo "nvidia-cudnn-frontend==$frontend --hash=sha256:$frontend_hash" > "$folder/frontend.txt"
  python3 -m pip download -q --no-deps --only-binary=:all: --implementation cp --python-version 3.11 --abi cp311 \
    --platform manylinux_2_28_x86_64 --require-hashes -d "$folder/frontend" -r "$folder/frontend.txt"
  unpack "$folder/frontend" build/deps/cudnn-frontend
fi

# oneDNN of a version that trains in bf16: beside the build, which prefers it to the system's.
fetch_onednn() {
  local folder
  folder=$(mktemp -d)
  cat >"$folder/requirements" <<'TXT'
onednn-devel-cpu-gomp==2023.2.0 --hash=sha256:9763c69e8c907e119056bd52ad918ca84ac9ba939d130a99dfa95ccca3e5e284
onednn-cpu-gomp==2023.2.0 --hash=sha256:2f22a54d6a890ed14bfa185d42a4be65d8b5b1df85dc1f0f3a9abe31620416fb
TXT
  python3 -m pip download -q --no-deps --only-binary=:all: --require-hashes -d "$folder" -r "$folder/requirements" &&
    python3 - "$folder" build/deps/onednn.part <<'PY' &&
import pathlib, sys, zipfile
target = pathlib.Path(sys.argv[2])
for wheel in pathlib.Path(sys.argv[1]).glob("*.whl"):
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            _, found, after = name.partition(".data/data/")
            if not found or name.endswith(("/", "libdnnl.so", "libdnnl.so.3.2")):  # the library is in there three times
                continue
            file = target / after
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(archive.read(name))
(target / "lib/libdnnl.so").symlink_to("libdnnl.so.3")
PY
    strip --strip-unneeded build/deps/onednn.part/lib/libdnnl.so.3 &&  # a fifth of what packages ship
    mv build/deps/onednn.part build/deps/onednn
  local status=$?
  rm -rf "$folder" build/deps/onednn.part
  return $status
}
if [ ! -e build/deps/onednn/include/dnnl.hpp ] && [ "$(uname -m)" = x86_64 ]; then
  if [ $onednn = asked ]; then
    echo "Fetching oneDNN 3.2 (PyPI: onednn-devel-cpu-gomp)"
    fetch_onednn
  elif grep -qwE 'avx512_bf16|amx_bf16' /proc/cpuinfo; then
    echo "Fetching oneDNN 3.2 (PyPI: onednn-devel-cpu-gomp): this processor computes in bf16"
    fetch_onednn || echo "setup.sh: oneDNN 3.2 was not fetched: paceline-train will have no --dtype bf16" >&2
  fi
fi
