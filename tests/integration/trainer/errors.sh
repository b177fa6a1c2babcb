#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: errors.sh PACELINE-TRAIN
# Errors are reported in one line, with the right status.
source "$(dirname "$0")/setup.sh"
tiny=(--synthetic --image-size 32 --width 0.125 --train-images 16 --test-images 4 --batch-size 4 --threads 1 --iterations 2)

status 2 "$TRAIN" --data data --no-such-option
says "--no-such-option"
status 2 "$TRAIN"
says "--data DIR or --synthetic"
status 2 "$TRAIN" "${tiny[@]}" --model resnet19
says "resnet19" "resnet18"
status 2 "$TRAIN" "${tiny[@]}" --communicator pigeon
says "pigeon"
if ! grep -qwE 'avx512_bf16|amx_bf16' /proc/cpuinfo; then
  status 2 "$TRAIN" "${tiny[@]}" --dtype bf16
  says "--dtype bf16: not available" "--device cuda"
fi
status 2 "$TRAIN" "${tiny[@]}" --dtype tf32
says "--dtype tf32: not available" "--device cuda"
status 2 "$TRAIN" "${tiny[@]}" --device gpu
says "--device"
status 2 "$TRAIN" "${tiny[@]}" --cuda-graphs
says "--device cuda"
status 2 "$TRAIN" "${tiny[@]}" --no-fusion
says "--no-fusion" "--device cuda"
if [ ! -e /dev/nvidiactl ]; then
  status 2 "$TRAIN" "${tiny[@]}" --device cuda
  says "--device cuda: "
  status 0 "$TRAIN" "${tiny[@]}" --device auto
  status 2 "$TRAIN" "${tiny[@]}" --device auto --dtype f16
  says "f16: not available on CPUs"
  if ! grep -qwE 'avx512_bf16|amx_bf16' /proc/cpuinfo; then
    status 2 "$TRAIN" "${tiny[@]}" --device auto --dtype bf16
    says "bf16: not available on CPUs"
  fi
fi
status 2 "$TRAIN" "${tiny[@]}" --batch-size many
says "--batch-size"
status 2 "$TRAIN" make-dataset
says "directory"
status 0 "$TRAIN" --help
grep -q -- --batch-size stdout || fail "no help"

status 1 sh -c '"$@" >/dev/full' sh "$TRAIN" "${tiny[@]}"
says "standard output: cannot be written"
status 1 "$TRAIN" "${tiny[@]}" --checkpoint /proc/checkpoint
says "/proc/checkpoint: cannot be written"
[ ! -s stdout ] || fail "it trained before it looked at the checkpoint's path: $(cat stdout)"
status 1 "$TRAIN" --data missing
says "missing: no such data set directory" "paceline-train make-dataset missing"
status 1 "$TRAIN" --data missing --image-size 64 --classes 3
says "missing: no such data set directory"
"$TRAIN" make-dataset data --train 20 --test 5 >/dev/null
status 1 "$TRAIN" --data data/test_batch.bin
says "data/test_batch.bin: is a file: give its directory to --data"
cp -r data cut
truncate -s -1 cut/data_batch_3.bin
status 1 "$TRAIN" --data cut
says "cut/data_batch_3.bin: 12291 bytes" "3073"
cp -r data labelled
printf '\x0b' | dd of=labelled/test_batch.bin bs=1 seek=6146 conv=notrunc status=none
status 1 "$TRAIN" --data labelled
says "labelled/test_batch.bin: record 2 has label 11"
status 1 "$TRAIN" --data data --batch-size 32
says "20 training images" "--batch-size"
status 1 "$TRAIN" --data data --batch-size 4 --accumulate 1000
says "(1 ranks × batch 4 × --accumulate 1000): lower --accumulate or --batch-size"
mkdir root && cp -r data root/cifar-10-batches-bin
"$TRAIN" --data root --batch-size 4 --iterations 1 --width 0.125 --warmup-epochs 9 --threads 1 >stdout || fail "--data at the parent"
grep -q '^the warm-up of 45 iterations is longer than the run of 1' stdout || fail "$(cat stdout)"
"$TRAIN" "${tiny[@]}" --classes 1000 >stdout || fail "1000 classes"
grep -q '^8 images in [0-9.]* s with start-up and evaluation: ' stdout || fail "$(cat stdout)"
status 1 "$TRAIN" make-dataset data --train 20
says "data/data_batch_1.bin: exists already"
status 1 "$TRAIN" "${tiny[@]}" --log no/such/log.jsonl
says "no/such/log.jsonl" "No such file or directory"

# A checkpoint that cannot be written is refused before the first step, and existing files are not replaced.
mkfifo pipe
mkdir folder
for name in no/such/checkpoint:"No such file" folder:"a directory" pipe:"not a regular file"; do
  status 1 "$TRAIN" "${tiny[@]}" --checkpoint "${name%%:*}" --log unwritten.jsonl
  says "${name%%:*}: cannot be written" "${name#*:}"
  [ ! -e unwritten.jsonl ] || fail "steps were made"
done
[ -p pipe ] || fail "the pipe was replaced"
status 2 "$TRAIN" "${tiny[@]}" --checkpoint same --log ./same
says "./same: --log and --checkpoint are the same file"
touch elsewhere && ln -s elsewhere link
"$TRAIN" "${tiny[@]}" --checkpoint link >/dev/null
[ -L link ] && [ -s elsewhere ] || fail "the link was replaced"
"$TRAIN" make-dataset pictures --format jpeg --image-size 40 --train 20 --test 10 >/dev/null
# A folder without read permission. root can read it, so root drops these capabilities.
as=(); [ "$(id -u)" -ne 0 ] || as=(setpriv "--bounding-set=-dac_override,-dac_read_search")
for folder in pictures/train/ pictures/val pictures; do
  chmod 0 "$folder"
  status 1 "${as[@]}" "$TRAIN" --data pictures
  says "pictures" "Permission denied"
  chmod 755 "$folder"
done

# A checkpoint of another run is refused before anything is written: it and the log of the earlier run stay unchanged.
"$TRAIN" "${tiny[@]}" --checkpoint other --log old.jsonl >/dev/null
cp other short
truncate -s -1000 short
cp old.jsonl log-before
unharmed() {
  cmp "$1" before || fail "$1: the checkpoint was overwritten"
  cmp old.jsonl log-before || fail "the log was overwritten"
}
for wrong in "other --model resnet34" "other --classes 7" "other --optimizer adam" "short --seed 1"; do
  read -ra words <<<"$wrong"
  cp "${words[0]}" before
  status 1 "$TRAIN" "${tiny[@]}" --checkpoint "${words[0]}" --resume --log old.jsonl "${words[@]:1}"
  says "${words[0]}: "
  unharmed "${words[0]}"
done
says "short: damaged checkpoint"
cp other before
status 1 "$TRAIN" "${tiny[@]/0.125/0.25}" --checkpoint other --resume --log old.jsonl
says "other: the checkpoint of a resnet18 width 0.125"
unharmed other
status 1 "$TRAIN" "${tiny[@]/%16/3}" --checkpoint other --overwrite-checkpoint --log old.jsonl
says "3 training images"
unharmed other
status 1 "$TRAIN" "${tiny[@]}" --checkpoint other --log old.jsonl
says "other: exists already" "--resume" "--overwrite-checkpoint"
unharmed other
for wrong in "--checkpoint-every 0" "--checkpoint-every 10x" "--checkpoint-every -1m" "--keep 0"; do
  # shellcheck disable=SC2086
  status 2 "$TRAIN" "${tiny[@]}" --checkpoint other $wrong
  says "${wrong%% *}"
done
status 2 "$TRAIN" "${tiny[@]}" --checkpoint-every 10
says "--checkpoint-every" "--checkpoint"
status 2 "$TRAIN" "${tiny[@]}" --checkpoint other --overwrite-checkpoint --log old.jsonl --model resnet19
unharmed other
status 2 "$TRAIN" "${tiny[@]}" --checkpoint other --log old.jsonl --communicator pigeon
unharmed other

# Options out of range.
for wrong in "--batch-size 0" "--batch-size -4" "--batch-size 1e99" "--iterations 0" "--lr -1" "--lr 0" "--momentum 2" "--width 0" \
  "--image-size 3" "--classes 1" "--threads 0" "--threads 99999999" "--loader-workers 0" "--accumulate 0" "--fraction 2" \
  "--bucket-mb 1e300 --updater overlap" "--seed -1" "--train-images 1000000000000" "--test-images 0" "--eval-every -1" "--max-ahead -1 --updater parameter_server" \
  "--lr nan" "--momentum nan" "--seed 99999999999999999999" "--max-ahead 18446744073709551616 --updater parameter_server" \
  "--ghost-batch 33" "--warmup-epochs -1" "--target-accuracy 2" "--lr-steps x" "--resume"; do
  # shellcheck disable=SC2086
  status 2 "$TRAIN" --synthetic $wrong
  says "${wrong%% *}"
done
status 2 "$TRAIN" --synthetic --train-images 200000 --batch-size 200000
says "--batch-size 200000: takes" "lower --batch-size"

status 2 "$TRAIN" --synthetic --threads 4096 --train-images 64
says "--threads 4096: this host has" "at most 16 threads for each"
status 2 mpirun --bind-to none -n 2 "$TRAIN" bench-allreduce --sizes 4K,1000G --communicators mpi
[ "$(grep -c 'paceline-train: --sizes: 1048576000 KiB of values take .* MiB' stderr)" -eq 1 ] || fail "$(cat stderr)"

head -c 1000 /dev/zero >zeros
status 1 "$TRAIN" "${tiny[@]}" --checkpoint zeros --resume
says "zeros: not a checkpoint"
status 1 "$TRAIN" "${tiny[@]/%2/8}" --lr 1e38 --schedule constant
says "no longer a finite number in iteration 1, at learning rate 1e+38" "--lr"
# The loss of the last iteration is finite, but the weights after its step are not: the earlier checkpoint stays.
cp other before
status 1 "$TRAIN" "${tiny[@]:0:${#tiny[@]}-1}" 3 --checkpoint other --resume --lr 1e38 --schedule constant
says "no longer a finite number after iteration 2, at learning rate 1e+38" "other is still the checkpoint before"
cmp other before || fail "a diverged run overwrote the checkpoint"

# With two ranks, the rank that finds the error reports it once with its name; the launcher adds its own lines.
status 1 mpirun --bind-to none -n 2 "$TRAIN" --data missing
[ "$(grep -c 'paceline-train: rank 0 on .*: missing: no such data set directory' stderr)" -eq 1 ] || fail "$(cat stderr)"
[ "$(grep -c 'no such data set' stderr)" -eq 1 ] || fail "reported twice: $(cat stderr)"
# Only rank 1 cannot read its data. Rank 0 must not wait for ever.
status 1 mpirun --bind-to none -n 1 "$TRAIN" --data data --batch-size 4 --threads 1 : \
  -n 1 "$TRAIN" --data missing --batch-size 4 --threads 1
grep -q 'paceline-train: rank 1 on .*: missing: no such' stderr || fail "$(cat stderr)"
# The batch is small enough for one rank, but not for two.
status 1 mpirun --bind-to none -n 2 "$TRAIN" "${tiny[@]/%4/12}"
[ "$(grep -c 'paceline-train: .*16 training images are fewer than one iteration takes (2 ranks × batch 12)' stderr)" -eq 1 ] ||
  fail "$(cat stderr)"
# A failure of one rank during the run ends the job.
mkdir full
status 1 mpirun --bind-to none -n 2 bash -c 'mkdir -p "full/checkpoint.$$.partial"; exec "$0" "$@"' "$TRAIN" "${tiny[@]}" \
  --checkpoint full/checkpoint
grep -q 'paceline-train: rank 0 on .*full/checkpoint: cannot be written: Is a directory' stderr || fail "$(cat stderr)"
