#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tests and measures what needs a GPU, on a machine that has one and little else: no network, perhaps no MPI.
#
#   tests/gpu.sh --pack KIT.tar.xz BUILD    on the machine that built: puts the programs of BUILD that a GPU needs, the
#                                           shared libraries that they load, and Open MPI into one archive, but nothing of
#                                           CUDA (add --with-cuda for cuDNN, cuBLAS and NCCL: 2 GB)
#   tests/gpu.sh [--quick] [--steps A,B,…] [--limit SECONDS] FROM OUTPUT
#                                           on the machine with the GPU. FROM: KIT.tar.xz, or a build where everything is
#                                           installed. OUTPUT: for figures and traces, made
#   tests/gpu.sh --steps                    lists the steps
#
# Each step is reported as done, failed or skipped, with the reason: in figures.txt, and with its figures in figures.json.
# Both, and OUTPUT/results.tar.xz with all logs and traces, are written after every step, so that an end in the middle
# loses one step. OUTPUT stays below 60 MiB, the archive below 16. Called again with the same programs and OUTPUT, which may
# also be the unpacked archive, it does what is not done yet; --steps repeats. --limit: the seconds that all steps may take;
# those that do not fit are skipped.
# Status: 0 all that could be done was right, 1 a step failed, 2 wrong usage, 3 there is no GPU: then each step was tried up
# to its first call of CUDA. PYTHON: the interpreter that has PyTorch, if not python3. CASES: those of the step overhead.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

usage() {
  sed -n '4,12s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2
  exit 2
}

# The steps in their order, with the seconds that each may take.
steps="machine:60 gpu_tests:300 kernel_times:60 training_step:120 torch_trace:120 two_ranks:120 nccl_plugin:60 programs:240
  pytorch:540 overhead:420 fusion:300 overlap:120 accuracy:240 images:120 allreduce:240 sanitizer:540"

pack=no quick=no with_cuda=no wanted='' limit=''
while [ $# -gt 0 ]; do
  case $1 in
    --pack) pack=yes ;;
    --quick) quick=yes ;;
    --with-cuda) with_cuda=yes ;;
    --limit)
      [[ ${2-} =~ ^[0-9]+$ ]] || usage
      limit=$2
      shift
      ;;
    --steps)
      if [ $# -eq 1 ]; then
        for step in $steps; do echo "${step%:*}"; done
        exit
      fi
      wanted=$2
      shift
      ;;
    -*) usage ;;
    *) break ;;
  esac
  shift
done
for step in ${wanted//,/ }; do
  [[ " ${steps//$'\n'/ } " == *" $step:"* ]] || { echo "gpu.sh: $step: no such step; --steps lists them" >&2; exit 2; }
done

# ---- Gathering what the other machine may lack ----

# needed FILE…: the shared libraries that these programs and libraries load, but libc's own.
needed() {
  ldd "$@" 2>/dev/null | awk '$2 == "=>" && $3 ~ /^\// { print $3 }' | sort -u |
    grep -vE '/(libc|libm|libdl|librt|libpthread|ld-linux[^/]*)\.so' || true
}

# put FILE…: copies into the kit's root, at the same place. Links stay links, and their targets come too.
put() {
  local file
  for file; do
    [ ! -L /lib ] || file=${file/#\/lib\//\/usr\/lib\/}
    [ -e "$file" ] && [ ! -e "$kit/root$file" ] || continue
    mkdir -p "$kit/root$(dirname "$file")"
    cp -P "$file" "$kit/root$file"
    if [ -L "$file" ]; then put "$(realpath -ms "$(dirname "$file")/$(readlink "$file")")"; fi
  done
}

# In the kit: build/ with what a GPU needs of the build, root/ with files of the system.
make_pack() {
  [ $# -eq 2 ] || usage
  local archive=$1 build=$2 package file
  [ -d "$build/bin" ] || { echo "gpu.sh: $build: no folder of a build: it has no bin/" >&2; exit 2; }
  grep -q '^CMAKE_CUDA_ARCHITECTURES:.*90' "$build/CMakeCache.txt" || {
    echo "gpu.sh: $build has no kernels for compute capability 9.0 (H100, H200): configure it with -DCMAKE_CUDA_ARCHITECTURES='80-real;90-real;100'" >&2
    exit 2
  }
  kit=$(mktemp -d)
  trap 'rm -rf "$kit"' EXIT
  mkdir -p "$kit/build/bin" "$kit/build/lib" "$kit/build/tests" "$(dirname "$archive")"
  cp -P "$build"/bin/paceline{,-train} "$kit/build/bin/"
  cp -P "$build"/lib/*.so* "$kit/build/lib/"
  cp -P "$build"/tests/gpu_* "$kit/build/tests/"
  for file in share lib/paceline; do
    [ ! -d "$build/$file" ] || cp -R "$build/$file" "$kit/build/$file"
  done
  local programs=("$kit"/build/*/*)
  # Open MPI and what it loads at run time, by Debian's packages.
  while read -r file; do
    [ -d "$file" ] || put "$file"
    case $file in *.so*) programs+=("$file") ;; esac
  done < <(for package in openmpi-bin openmpi-common libopenmpi3 libpmix2 libhwloc15; do
    dpkg -L "$package" 2>/dev/null || echo "gpu.sh: no package $package here: left out" >&2
  done | grep -vE '/(doc|man|lintian)/' | sort -u)
  put /usr/bin/mpirun
  local leave='^$'
  [ "$with_cuda" = yes ] || leave='/lib(cuda|cudnn|cublas|nccl|nvrtc|nvJitLink|cupti)[^/]*\.so'
  for file in $(needed "${programs[@]}" | grep -vE "$leave|^$kit/"); do put "$file"; done
  if [ "$with_cuda" = yes ]; then
    put /usr/local/cuda/lib64/libcudnn*.so.9 /usr/local/cuda/lib64/libnccl.so.2 /usr/local/cuda/lib64/libcupti.so.13 \
      /usr/local/cuda/lib64/libcublas*.so.13 /usr/local/cuda/lib64/libnvrtc*.so.13 \
      /usr/local/cuda/lib64/libnvrtc-builtins.so.13.*  # which NVRTC loads by that name
  fi
  tar -C "$kit" -c build root | xz -T0 > "$archive"
  echo "gpu.sh: $archive: $(find "$kit" -type f | wc -l) files, $(du -sm "$kit" | cut -f1) MB, packed $(($(stat -c %s "$archive") / 1048576)) MiB"
}
if [ "$pack" = yes ]; then
  make_pack "$@"
  exit
fi

# ---- The machine ----

[ $# -eq 2 ] || usage
build=$(realpath -m -- "$1") output=$(realpath -m -- "$2") root=''
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [ -f "$build" ]; then
  tar -C "$work" -xJf "$build" || { echo "gpu.sh: $build: no archive made by --pack" >&2; exit 2; }
  build=$work/build root=$work/root
fi
for program in paceline paceline-train; do
  [ -x "$build/bin/$program" ] || { echo "gpu.sh: $build/bin/$program is missing: build Paceline with CUDA first" >&2; exit 2; }
done
mkdir -p "$output/steps"
built=$(cd "$build" && sha256sum bin/paceline* lib/*.so* tests/gpu_* | sha256sum)
if [ "$(cat "$output/steps/programs" 2>/dev/null)" != "$built" ]; then
  rm -f "$output"/steps/* "$output"/figures.{json,txt} "$output/results.tar.xz"
  echo "$built" > "$output/steps/programs"
fi
touch "$output/steps/all.tsv"

libraries='' found_path=$PATH
if [ -n "$root" ]; then
  libraries=$(find "$root" -name '*.so*' -printf '%h\n' 2>/dev/null | sort -u |
    grep -vE '/(openmpi|openmpi3|pmix2?|hwloc|platforms)$' | paste -sd:)
  if [ -x "$root/usr/bin/orted" ]; then  # which the programs are linked with; another Open MPI here has another PMIx
    arch=$(find "$root/usr/lib" -maxdepth 1 -name '*-linux-gnu' -printf '%f' -quit)
    export PATH=$root/usr/bin:$PATH OPAL_PREFIX=$root/usr PMIX_INSTALL_PREFIX=$root/usr
    export OPAL_LIBDIR=$root/usr/lib/$arch/openmpi/lib OPAL_PKGDATADIR=$root/usr/share/openmpi OPAL_SYSCONFDIR=$root/etc
    export OMPI_MCA_mca_base_component_path=$root/usr/lib/$arch/openmpi/lib/openmpi3
    export PMIX_PKGLIBDIR=$root/usr/lib/$arch/pmix2/lib/pmix HWLOC_PLUGINS_PATH=$root/none
    ln -sfn orterun "$root/usr/bin/mpirun"
  fi
fi
python=${PYTHON:-python3}
# How Python programs are started: with this machine's MPI and with PyTorch's own cuDNN, not with the kit's.
as_found="env $(printf -- '-u %s ' OPAL_PREFIX PMIX_INSTALL_PREFIX OPAL_LIBDIR OPAL_PKGDATADIR OPAL_SYSCONFDIR PMIX_PKGLIBDIR \
  OMPI_MCA_mca_base_component_path HWLOC_PLUGINS_PATH)PATH=$found_path LD_LIBRARY_PATH=${LD_LIBRARY_PATH-} $python"
# CUDA's libraries: the toolkit's, or those that came with PyTorch.
for folder in /usr/local/cuda/lib64 /usr/local/cuda/extras/CUPTI/lib64 \
  $("$python" -c 'import glob, site; print(*(p for s in site.getsitepackages() for p in sorted(glob.glob(s + "/nvidia/*/lib"))))' 2>/dev/null); do
  [ -d "$folder" ] && libraries+=${libraries:+:}$folder
done
export LD_LIBRARY_PATH=${libraries}${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export PATH=$build/bin:$PATH GTEST_COLOR=no
# The newest CUPTI of the machine: PyTorch brings one beside the toolkit's.
newest_cupti() {
  "$python" - ${libraries//:/ } <<'PY' 2>/dev/null || true
import ctypes, glob, sys
found = []
for folder in sys.argv[1:]:
    for file in sorted(glob.glob(folder + "/libcupti.so.1[23]")):
        version = ctypes.c_uint32()
        try:
            ctypes.CDLL(file).cuptiGetVersion(ctypes.byref(version))
        except OSError:
            continue
        found.append((version.value, file))
print(*max(found))
PY
}
read -r cupti_version cupti < <(newest_cupti; echo)
[ -z "$cupti" ] || export PACELINE_CUPTI=${PACELINE_CUPTI-$cupti}
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_btl_vader_single_copy_mechanism=none OMPI_MCA_mpi_yield_when_idle=1
command -v ssh >/dev/null || export OMPI_MCA_plm_rsh_agent="${OMPI_MCA_plm_rsh_agent-}"

# ---- Steps ----

# step NAME LIMIT: runs the function NAME below in a shell of its own; its output is in OUTPUT/steps/NAME.txt. It ends with
# 0 if done, with `skip REASON` if it cannot be, else it has failed.
step() {
  local name=$1 seconds=$2 status=0 left how reason=""
  export step_reason=$output/steps/$name.reason
  if [ -n "$limit" ]; then  # a step that hangs must not take all of what is left
    left=$((limit - SECONDS))
    seconds=$((left < 60 ? left : left / 2 < 60 ? 60 : left / 2))
    [ "$seconds" -lt "$2" ] || seconds=$2
  fi
  if [ "$seconds" -lt 15 ]; then
    status=77
    echo "no time is left: call it again with --steps $name" > "$step_reason"
  else
    (cd "$work" && timeout -k 10 "$seconds" bash -c 'source "$0" && set -euo pipefail && "$@"' "$work/functions" "$name") \
      > "$output/steps/$name.txt" 2>&1 || status=$?
  fi
  case $status in
    0) how='done' ;;
    77) how=skipped reason=$(cat "$step_reason") ;;
    124 | 137)
      how=failed reason="not done after $seconds s"
      [ "$seconds" -eq "$2" ] || how=skipped reason+=", and the limit leaves no more: call it again with --steps $name"
      ;;
    *)
      how=failed reason=$(grep -m1 -E '^(paceline|gpu_|[a-z_]+\.py)[a-z_-]*: ' "$output/steps/$name.txt" ||
        grep -vE '^[ -]*$' "$output/steps/$name.txt" | tail -1 || true)
      ;;
  esac
  [ -n "$reason" ] || [ ! -e "$step_reason" ] || reason=$(cat "$step_reason")
  rm -f "$step_reason"
  if [ "$(stat -c %s "$output/steps/$name.txt" 2>/dev/null || echo 0)" -gt 1000000 ]; then
    tail -c 1000000 "$output/steps/$name.txt" > "$work/end" && mv "$work/end" "$output/steps/$name.txt"
  fi
  sed -i "/^$name\t/d" "$output/steps/all.tsv"
  printf '%s\t%s\t%s\n' "$name" "$how" "${reason:0:400}" >> "$output/steps/all.tsv"
  printf '%-16s %-8s %s\n' "$name" "$how" "$reason"
  cp "$output/steps/all.tsv" "$output/figures.txt"
  ! command -v python3 >/dev/null || python3 "$here/gpu/figures.py" collect "$output"
  (cd "$output" && tar -c --exclude=results.tar.xz . | xz -T0 -3 > "$work/results" && mv "$work/results" results.tar.xz)
}

# What follows runs within steps.
cat > "$work/functions" <<'FUNCTIONS'
# skip REASON: ends the step. say TEXT: what is shown beside it.
skip() { echo "$*" > "$step_reason"; exit 77; }
say() { echo "$*" > "$step_reason"; }

# keep FOLDER FILE…: copies into OUTPUT/FOLDER what leaves OUTPUT, without its archive, below 14 MiB.
keep() {
  local folder=$output/$1 file
  shift
  mkdir -p "$folder"
  for file; do
    if [ $(($(du -skc --exclude=results.tar.xz "$output" "$file" | tail -1 | cut -f1))) -lt 14336 ]; then
      cp "$file" "$folder/"
    else
      echo "$file: $(du -k "$file" | cut -f1) KiB are left out: OUTPUT would be too large" | tee -a "$output/steps/left_out"
    fi
  done
}
with_python() { command -v python3 >/dev/null || skip "no python3"; }
with_mpi() { command -v mpirun >/dev/null || skip "no mpirun"; }

# on_gpu COMMAND…: where the program says that there is no GPU, the step is skipped with its words.
on_gpu() {
  local status=0
  "$@" 2> stderr.txt || status=$?
  cat stderr.txt >&2
  [ "$status" -ne 0 ] || return 0
  if grep -q 'no GPU can be used' stderr.txt; then
    skip "$(sed -n '/no GPU can be used/{s/.*no GPU can be used: \(.*\): see.*/no GPU: \1/p;q}' stderr.txt)"
  fi
  return "$status"
}

machine() {
  on_gpu "$build/tests/gpu_kernel_times" 0.05 > /dev/null
  nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.max.sm,power.limit --format=csv,noheader > gpus.txt ||
    skip "no nvidia-smi, but a GPU"
  cat gpus.txt
  say "$(head -1 gpus.txt); CUPTI ${cupti_version:-not found} ${PACELINE_CUPTI-}"
}

# tests_of LOG RESULT: how many tests ended so.
tests_of() { sed -n "s/^\[$2\] \([^ ,]*\) (.*ms)\$/\1/p" "$1" | tr -d '\r' | sort -u | wc -l; }

# gpu_tests [COMMAND…]: every test program of a GPU, under COMMAND.
gpu_tests() {
  local program log skipped=0 passed=0 reason=""
  for program in "$build"/tests/*gpu*_test; do
    log=$(basename "$program").log
    local launch=("$@" "$program")
    case $program in
      *communicators*)
        if command -v mpirun >/dev/null; then launch=(mpirun --bind-to none -n 2 "$@" "$program"); else continue; fi ;;
    esac
    echo "== ${launch[*]}"
    "${launch[@]}" > "$log" 2>&1 || { cat "$log"; echo "$(basename "$program") failed"; return 1; }
    cat "$log"
    skipped=$((skipped + $(tests_of "$log" '  SKIPPED ')))  # every rank says so
    passed=$((passed + $(tests_of "$log" '       OK ')))
    [ -n "$reason" ] || reason=$(grep -m1 -o 'no GPU: .*' "$log" || true)
  done
  [ -z "$reason" ] || skip "$reason ($skipped tests skipped, by name)"
  say "$passed tests passed, $skipped skipped"
}

sanitizer() {
  local tool
  for tool in compute-sanitizer /usr/local/cuda/bin/compute-sanitizer; do
    ! command -v -- "$tool" >/dev/null || { gpu_tests "$tool" --tool memcheck --error-exitcode 9 --report-api-errors no; return; }
  done
  on_gpu "$build/tests/gpu_kernel_times" 0.05 > /dev/null
  skip "no compute-sanitizer"
}

# The trace's times of kernels against CUDA's events.
kernel_times() {
  with_python
  on_gpu paceline record --force -o kernels -- "$build/tests/gpu_kernel_times" > kernels.json
  paceline report --format json kernels > kernels-report.json
  python3 "$here/gpu/figures.py" kernel-times kernels.json kernels-report.json "$output/steps/kernel_times.json" | tee said
  say "$(tail -1 said)"
}

model=(--model resnet18 --synthetic --image-size 32 --train-images 4096 --test-images 256)

# A real training step under the recorder; a small trace of it is kept.
training_step() {
  on_gpu paceline record --force -o step --iterations 20:39 -- paceline-train "${model[@]}" --device cuda --dtype bf16 \
    --batch-size 128 --iterations 60 --eval-every 0 --log step.jsonl
  paceline info step
  paceline report --format text,json -o ./ step
  cat report.txt
  keep trace step/*.pace
  with_python
  python3 "$here/gpu/figures.py" training-step report.json step.jsonl "$output/steps/training_step.json" | tee said
  say "$(tail -1 said)"
}

two_ranks() {
  with_mpi
  on_gpu mpirun --bind-to none -n 2 paceline record --force -o two --iterations 5:14 -- paceline-train "${model[@]}" \
    --device cuda --share-gpu --communicator mpi --updater overlap --bucket-mb 4 --batch-size 64 --iterations 20 --eval-every 0
  paceline info two
  [ "$(ls two/*.pace | wc -l)" -eq 2 ]
  paceline report --format text,json -o ./ two
  cat report.txt
  keep two-ranks report.txt report.json two/*.pace
  say "two traces on one clock, and a report"
}

# NCCL's own profiler plugin: its collectives are in the trace. Where there is one GPU, NCCL takes its two ranks for ranks
# of two hosts.
nccl_plugin() {
  with_mpi
  with_python
  local events
  on_gpu "$build/tests/gpu_kernel_times" 0.05 > /dev/null
  printf '#!/usr/bin/env bash\nNCCL_HOSTID=$OMPI_COMM_WORLD_RANK exec "$@"\n' > own_host
  chmod +x own_host
  mpirun --bind-to none -n 2 ./own_host paceline record --force -o nccl --iterations 5:14 -- paceline-train "${model[@]}" \
    --device cuda --share-gpu --communicator pure_nccl --updater overlap --bucket-mb 4 --batch-size 64 --iterations 20 \
    --eval-every 0
  paceline info nccl | tee info.txt
  paceline report --format text,json -o ./ nccl
  cat report.txt
  keep nccl report.txt nccl/*.pace
  events=$(($(sed -n 's/.* CUDA and \([0-9]*\) NCCL events.*/\1/p' info.txt | paste -sd+)))
  echo "{\"events\": $events}" > "$output/steps/nccl_plugin.json"
  say "$events events of NCCL's plugin in the traces of two ranks"
  [ "$events" -gt 0 ]
}

# In fp16 with buckets that are sent during backward: the losses of a run that sends the gradient afterwards.
overlap() {
  with_mpi
  with_python
  local updater
  for updater in overlap allreduce; do
    on_gpu mpirun --bind-to none -n 2 paceline-train "${model[@]}" --device cuda --share-gpu --communicator mpi --dtype f16 \
      --updater "$updater" --batch-size 64 --iterations 40 --eval-every 0 --log "$updater.jsonl"
  done
  python3 "$here/gpu/figures.py" losses overlap.jsonl allreduce.jsonl "$output/steps/overlap.json" none | tee said
  say "$(tail -1 said)"
}

accuracy() {
  with_python
  on_gpu "$build/tests/gpu_kernel_times" 0.05 > /dev/null
  paceline-train make-dataset data --train 2048 --test 512 > /dev/null
  local device options=(--model resnet18 --data data --batch-size 32 --epochs 3 --seed 1)
  on_gpu paceline-train "${options[@]}" --device cuda --log cuda.jsonl
  paceline-train "${options[@]}" --device cpu --log cpu.jsonl
  python3 "$here/gpu/figures.py" accuracy cpu.jsonl cuda.jsonl "$output/steps/accuracy.json" | tee said
  say "$(tail -1 said)"
}

# Crops of JPEGs and enlarged images, which the GPU gets as bytes: the losses of the CPU, which has them in fp32.
images() {
  with_python
  on_gpu "$build/tests/gpu_kernel_times" 0.05 > /dev/null
  paceline-train make-dataset jpegs --format jpeg --train 256 --test 64 > /dev/null
  paceline-train make-dataset small --train 256 --test 64 > /dev/null
  local device data
  for device in cuda cpu; do
    for data in "jpegs --image-size 64" "small --resize 48"; do
      # shellcheck disable=SC2086
      paceline-train --model resnet18 --data $data --device "$device" --batch-size 32 --lr 0.001 --iterations 8 --seed 1 \
        --eval-every 0 --log "$device.${data%% *}.jsonl"
    done
  done
  python3 "$here/gpu/figures.py" losses cuda.jpegs.jsonl cpu.jpegs.jsonl "$output/steps/jpegs.json"
  python3 "$here/gpu/figures.py" losses cuda.small.jsonl cpu.small.jsonl "$output/steps/images.json" | tee said
  say "$(tail -1 said)"
}

# fp16 with what cuDNN fuses and without it, in turns.
fusion() {
  with_python
  local round options=(--model resnet50 --synthetic --image-size 224 --classes 256 --train-images 4096 --test-images 256
    --device cuda --dtype f16 --batch-size 128 --iterations 60 --eval-every 0)
  for round in 1 2 3; do
    on_gpu paceline-train "${options[@]}" --log "fused.$round.jsonl"
    paceline-train "${options[@]}" --no-fusion --log "separate.$round.jsonl"
  done
  python3 "$here/gpu/figures.py" fusion fused.*.jsonl separate.*.jsonl "$output/steps/fusion.json" | tee said
  say "$(tail -1 said)"
}

# With and without the recorder in turns: a step that the GPU limits, one of CUDA graphs, and a small one of many launches,
# which has no limit. The others, which have none either, show which part of the recorder a graph's step pays for.
overhead() {
  with_python
  local round rounds case options record limit said=''
  rounds=$([ "$quick" = yes ] && echo 3 || echo 5)
  for case in ${CASES:-gpu_bound graphs small graphs_no_cuda graphs_no_counters graphs_no_scheduler}; do
    options="${model[*]} --batch-size 256 --cuda-graphs" record='' limit=none
    case $case in
      gpu_bound)
        options="--model resnet50 --synthetic --image-size 224 --classes 256 --train-images 20480 --test-images 256 --batch-size 256"
        limit=1 ;;
      graphs) limit=1 ;;
      small) options="${model[*]} --batch-size 128" ;;
      graphs_no_cuda) record=--no-cuda ;;
      graphs_no_counters) record='--counters 0' ;;
      graphs_no_scheduler) record='--scheduler off' ;;
    esac
    for round in $(seq "$rounds"); do
      # shellcheck disable=SC2086
      on_gpu paceline-train $options --device cuda --dtype bf16 --iterations 80 --eval-every 0 --log "$case.without.$round.jsonl"
      # shellcheck disable=SC2086
      paceline record --force -o "overhead_$case" $record -- paceline-train $options --device cuda --dtype bf16 --iterations 80 \
        --eval-every 0 --log "$case.with.$round.jsonl"
    done
    python3 "$here/gpu/figures.py" overhead "$limit" "$case".with.*.jsonl "$case".without.*.jsonl \
      "$output/steps/overhead_$case.json" | tee said || said+="beyond its limit: "
    said+="$case: $(tail -1 said); "
  done
  [ ! -d overhead_graphs ] || keep graphs overhead_graphs/*.pace
  say "$said"
  [[ $said != *beyond* ]]
}

allreduce() {
  with_mpi
  local ranks
  on_gpu mpirun --bind-to none -n 1 paceline-train bench-allreduce --device cuda --communicators mpi --sizes 4K
  ranks=$(nvidia-smi -L | wc -l)
  if [ "$ranks" -lt 2 ]; then
    mpirun --bind-to none -n 2 paceline-train bench-allreduce --libraries --share-gpu | tee "$output/allreduce.txt"
    mpirun --bind-to none -n 2 paceline-train bench-allreduce --device cuda --share-gpu --sizes 1M,64M | tee -a "$output/allreduce.txt"
    say "one GPU: NCCL left out, two ranks through MPI; see allreduce.txt"
  else
    mpirun --bind-to none -n "$ranks" paceline-train bench-allreduce --libraries | tee "$output/allreduce.txt"
    mpirun --bind-to none -n "$ranks" paceline-train bench-allreduce --device cuda --sizes 1M,64M | tee -a "$output/allreduce.txt"
    say "$ranks GPUs; see allreduce.txt"
  fi
}

# A step of PyTorch, recorded, beside PyTorch's own trace of the same steps: kernels, their numbers and their times.
torch_trace() {
  with_python
  on_gpu "$build/tests/gpu_kernel_times" 0.05 > /dev/null
  local torch
  read -ra torch <<< "$as_found"
  "${torch[@]}" -c 'import torch' 2>/dev/null || skip "PyTorch is not installed"
  "${torch[@]}" "$here/gpu/torch_step.py" --kineto kineto.json
  env -u PACELINE_CUPTI paceline record --force --pytorch -o torch -- "${torch[@]}" "$here/gpu/torch_step.py"
  gzip -k kineto.json
  keep torch kineto.json.gz torch/*.pace
  local run
  for run in torch kineto.json; do
    paceline query --format csv "$run" "SELECT name, count(*), sum(duration_ns) FROM slices WHERE category = 'kernel'
      GROUP BY name" > "${run%.json}.csv"
  done
  python3 "$here/gpu/figures.py" kernels torch.csv kineto.csv "$output/steps/torch_trace.json" | tee said
  say "$(tail -1 said)"
}

# Programs of PyTorch, JAX, CuPy and Numba, alone and recorded.
programs() {
  with_python
  on_gpu "$build/tests/gpu_kernel_times" 0.05 > /dev/null
  local torch status=0 trace
  read -ra torch <<< "$as_found"
  "${torch[@]}" -c 'import torch' 2>/dev/null || skip "PyTorch is not installed"
  env -u PACELINE_CUPTI PYTHON="${torch[*]}" "$python" "$here/gpu/programs.py" traces | tee said || status=$?
  keep programs traces/*.txt traces/programs.json
  for trace in ddp_nccl ddp_gloo_slow_rank graphs; do
    [ ! -d "traces/$trace" ] || keep "programs/$trace" "traces/$trace"/*.pace
  done
  cp traces/programs.json "$output/steps/programs.json"
  say "$(tail -1 said)"
  return "$status"
}

pytorch() {
  with_python
  local options=() torch
  read -ra torch <<< "$as_found"
  [ "$quick" = no ] || options=(--rounds 3 --iterations 30)
  {
    echo '#!/usr/bin/env bash'
    export -p | grep -E ' ((OPAL|OMPI|PMIX|HWLOC)_[A-Za-z_]*|PATH|LD_LIBRARY_PATH)='
    printf 'exec %q "$@"\n' "$build/bin/paceline-train"
  } > train
  chmod +x train
  on_gpu "${torch[@]}" "$here/bench/gpu_torch.py" --train "$PWD/train" "${options[@]}" \
    --output "$output/steps/pytorch.json" || { [ $? -eq 4 ] && skip "PyTorch is not installed"; false; }
  say "see figures.json: pytorch"
}
FUNCTIONS
export build root output here quick python as_found cupti_version

SECONDS=0
for entry in $steps; do
  name=${entry%:*}
  if [ -z "$wanted" ] && grep -q "^$name"$'\tdone\t' "$output/steps/all.tsv"; then
    printf '%-16s %-8s %s\n' "$name" "done" before
  elif [ -z "$wanted" ] || [[ ,$wanted, == *,$name,* ]]; then
    step "$name" "${entry#*:}"
  fi
done
if grep -qP '\tfailed\t' "$output/steps/all.tsv"; then exit 1; fi
if grep -qP '^machine\tskipped\tno GPU' "$output/steps/all.tsv"; then
  echo "There is no GPU here: nothing was measured."
  exit 3
fi
