#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compiles and links what uses CUDA, the trainer's part for GPUs and the recorder's, against CUDA 12 from PyPI: headers,
# libraries and ptxas of 12.9. PyPI has no nvcc 12, so clang 16 compiles the kernels, and the fatbinary of nvcc 13 packs
# them. It needs no GPU, and runs nothing. It fetches 1.5 GB once, into build/deps, and takes about two minutes.
# usage: tests/cuda12.sh
set -euo pipefail
cd "$(dirname "$0")/.."
toolkit=$PWD/build/deps/cuda12 build=$PWD/build/cuda12
fatbinary=$(command -v fatbinary || echo "${CUDA_HOME:-/usr/local/cuda}/bin/fatbinary")
for tool in clang++-16 "$fatbinary"; do
  command -v "$tool" >/dev/null || { echo "cuda12.sh: $tool is missing: install clang-16 and CUDA 13's nvcc" >&2; exit 1; }
done

if [ ! -e "$toolkit/complete" ]; then
  echo "Fetching CUDA 12.9, cuDNN and NCCL (PyPI: nvidia-*-cu12)"
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
  cat > "$folder/requirements" <<'TXT'
nvidia-cublas-cu12==12.9.3.13 --hash=sha256:d7d51055f161b317c7105ddaae90e71eda059026074ffef93cf7cde2886bfe72
nvidia-cuda-cccl-cu12==12.9.27 --hash=sha256:37869e17ce2e1ecec6eddf1927cca0f8c34e64fd848d40453df559091e2d7117
nvidia-cuda-cupti-cu12==12.9.79 --hash=sha256:096bcf334f13e1984ba36685ad4c1d6347db214de03dbb6eebb237b41d9d934f
nvidia-cuda-nvcc-cu12==12.9.86 --hash=sha256:5d6a0d32fdc7ea39917c20065614ae93add6f577d840233237ff08e9a38f58f0
nvidia-cuda-nvrtc-cu12==12.9.86 --hash=sha256:210cf05005a447e29214e9ce50851e83fc5f4358df8b453155d5e1918094dcb4
nvidia-cuda-runtime-cu12==12.9.79 --hash=sha256:25bba2dfb01d48a9b59ca474a1ac43c6ebf7011f1b0b8cc44f54eb6ac48a96c3
nvidia-cudnn-cu12==9.28.0.42 --hash=sha256:9ff58b7f36dacd0a93e89f8f2957b52466889217963701daa15e577317cfa375
nvidia-nccl-cu12==2.32.3 --hash=sha256:bb94b2348e4861d5e8aa00b36c3d12d9bdf9c6369b82cbb723de0b582280a21c
TXT
  python3 -m pip download -q --no-deps --only-binary=:all: --require-hashes -d "$folder" -r "$folder/requirements"
  rm -rf "$toolkit"
  python3 - "$folder" "$toolkit" <<'PY'
import pathlib, shutil, sys, zipfile

toolkit = pathlib.Path(sys.argv[2])
for wheel in pathlib.Path(sys.argv[1]).glob("*.whl"):
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():  # nvidia/PACKAGE/include/…
            parts = name.split("/")
            if len(parts) < 4 or parts[0] != "nvidia" or name.endswith("/"):
                continue
            file = toolkit.joinpath(*parts[2:])
            file.parent.mkdir(parents=True, exist_ok=True)
            with archive.open(name) as source, file.open("wb") as target:
                shutil.copyfileobj(source, target)
for library in list((toolkit / "lib").glob("*.so.*")):
    link = library.with_name(library.name.partition(".so")[0] + ".so")
    if not link.exists():
        link.symlink_to(library.name)
(toolkit / "lib64").symlink_to("lib")
PY
  cat > "$toolkit/bin/nvcc" <<'SH'
#!/bin/sh
# No compiler: CMake asks it where the toolkit is, and for its version.
case "$*" in
  *--version*) echo "Cuda compilation tools, release 12.9, V12.9.86" ;;
  *) echo "#\$ TOP=$(cd "$(dirname "$0")/.." && pwd)" >&2 ;;
esac
SH
  cat > "$toolkit/bin/fatbinary" <<SH
#!/bin/bash
# clang 16 names images to fatbinary as before CUDA 13, whose fatbinary this is.
arguments=()
for a; do
  if [[ \$a =~ ^--?image=profile=(sm|compute)_([0-9a-z]+),file=(.*)\$ ]]; then
    kind=elf; [ "\${BASH_REMATCH[1]}" = sm ] || kind=ptx
    a=--image3=kind=\$kind,sm=\${BASH_REMATCH[2]},file=\${BASH_REMATCH[3]}
  fi
  arguments+=("\$a")
done
exec "$fatbinary" "\${arguments[@]}"
SH
  chmod +x "$toolkit"/bin/*
  touch "$toolkit/complete"
fi

said=$(CUDA_HOME=$toolkit cmake -G Ninja -S . -B "$build" -DCMAKE_BUILD_TYPE=Release -DPACELINE_TESTS=OFF \
  -DPACELINE_VIEWER=OFF -DPACELINE_CUDA=ON -DPACELINE_TRAINER=ON -DNVCC="$toolkit/bin/nvcc" \
  -DCMAKE_CUDA_COMPILER=clang++-16 -DCMAKE_CUDA_ARCHITECTURES="80-real;90" 2>&1) || { printf '%s\n' "$said" >&2; exit 1; }
cmake --build "$build" --target paceline-train-cuda paceline-cupti
loads=$(readelf -d "$build/lib/libpaceline-train-cuda.so")
grep -q 'libcublasLt\.so\.12' <<<"$loads" || { printf 'cuda12.sh: not linked with CUDA 12:\n%s\n' "$loads" >&2; exit 1; }
echo "Compiled for compute capability 8.0 and 9.0 with CUDA 12.9 and clang; nothing of it ran."
