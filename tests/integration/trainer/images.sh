#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: images.sh PACELINE-TRAIN
# Folders of JPEGs, CIFAR-10 enlarged, shards of equal length: whole runs.
source "$(dirname "$0")/setup.sh"
"$TRAIN" make-dataset pictures --format jpeg --image-size 40 --train 30 --test 9 --seed 3 >stdout
grep -q 'pictures: 30 training and 9 test images of 10 classes, JPEGs' stdout || fail "make-dataset"
[ "$(find pictures/train -name '*.jpg' | wc -l)" -eq 30 ] || fail "not 30 pictures"
status 1 "$TRAIN" make-dataset pictures --format jpeg
says "pictures/train: exists already"
export OMP_NUM_THREADS=1
tiny=(--width 0.125 --batch-size 4)
run=(--data pictures --image-size 32 "${tiny[@]}" --lr 0.02 --schedule constant)

# A run that stops within an epoch and resumes with another number of workers gives the same bits, and so does one in
# which only rank 0 has the pictures.
ranks 2 "${run[@]}" --iterations 5 --checkpoint whole --log whole.jsonl >/dev/null
grep -q '"image_size":32' whole.jsonl && grep -q '"train_images":30' whole.jsonl || fail "$(head -1 whole.jsonl)"
grep -q '"test_images":9' whole.jsonl || fail "$(head -1 whole.jsonl)"
ranks 2 "${run[@]}" --iterations 2 --checkpoint parts --loader-workers 3 >/dev/null
ranks 2 "${run[@]}" --iterations 5 --checkpoint parts --resume --loader-workers 2 >/dev/null
cmp whole parts || fail "resumed: other weights"
mpirun --bind-to none -n 1 "$TRAIN" "${run[@]}" --iterations 5 --checkpoint sent --broadcast-data : \
  -n 1 "$TRAIN" "${run[@]/pictures/nowhere}" --iterations 5 --checkpoint sent --broadcast-data >/dev/null
cmp whole sent || fail "data broadcast: other weights"
status 1 mpirun --bind-to none -n 1 "$TRAIN" "${run[@]}" : -n 1 "$TRAIN" "${run[@]/pictures/nowhere}"
grep -q 'rank 1 on .*: nowhere/train/.*\.jpg: rank 0 lists it, but' stderr || fail "$(cat stderr)"

# A truncated picture ends the run before the end of the epoch with the picture's name. The existing checkpoint stays.
victim=$(find pictures/train -name '*.jpg' -print -quit)
cp "$victim" good.jpg
cp whole before
truncate -s -40 "$victim"
status 1 "$TRAIN" "${run[@]}" --epochs 1 --sharding equal-length --checkpoint whole --overwrite-checkpoint
says "$victim: Premature end of JPEG file" "replace it" "--on-bad-image skip"
cmp whole before || fail "the checkpoint was overwritten"
# With --on-bad-image skip another picture takes its place, the same one for any number of workers, and a bad test
# picture is not counted. An entry that is not a regular file is left out too.
other=$(find pictures/train -name '*.jpg' | sort | grep -vF "$victim" | tail -1)
tested=$(find pictures/val -name '*.jpg' | sort | head -1)
echo "no picture" >"$tested"
rm "$other" && mkfifo "$other"
for workers in 1 3; do
  ranks 2 "${run[@]}" --epochs 2 --sharding equal-length --on-bad-image skip --loader-workers "$workers" \
    --checkpoint "skipped$workers" --log "skipped$workers.jsonl" >stdout 2>stderr
  grep -q '^3 damaged or unreadable images were left out: 2 of training, .* and 1 of the test images$' stdout ||
    fail "$(cat stdout)"
  for file in "$victim" "$other" "$tested"; do grep -q "rank [01]: left out: $file: " stderr || fail "$file: $(cat stderr)"; done
  grep -q '"test_images":8' "skipped$workers.jsonl" && grep -q '"bad_images":3' "skipped$workers.jsonl" ||
    fail "$(cat "skipped$workers.jsonl")"
done
cmp skipped1 skipped3 || fail "left out: other weights with other workers"
rm "$other" && cp good.jpg "$other"
cp good.jpg "$tested"
mv good.jpg "$victim"

status 2 "$TRAIN" "${run[@]}" --classes 7
says "pictures: has 10 classes, but --classes is 7"
status 2 "$TRAIN" "${run[@]}" --resize 64
says "pictures: --resize only applies to CIFAR-10's files"
status 1 "$TRAIN" "${run[@]/%4/31}"
says "30 training images" "--batch-size"
mkdir -p empty/train empty/val
status 1 "$TRAIN" --data empty
says "empty/train: no classes"

# The lectures' data set in small: a part of CIFAR-10, enlarged. The images that remain do not fill whole batches.
"$TRAIN" make-dataset cifar --train 60 --test 10 >/dev/null
lecture=(--data cifar --resize 48 --fraction 0.5 "${tiny[@]}" --eval-every 0)
"$TRAIN" "${lecture[@]}" --iterations 1 --log lecture.jsonl >/dev/null
python3 - <<'PY'
import json
start = json.loads(open("lecture.jsonl").readline())
assert start["image_size"] == 48 and start["data"] == "cifar at 48 px, 50 %", start
assert 25 <= start["train_images"] <= 35, start
PY
# Without shifts and mirroring the first batch's loss differs. The log omits default values.
"$TRAIN" "${lecture[@]}" --iterations 1 --augment none --log plain.jsonl >/dev/null
python3 - <<'PY'
import json
drawn, plain = ([json.loads(line) for line in open(name + ".jsonl")] for name in ("lecture", "plain"))
assert "augment" not in drawn[0] and plain[0]["augment"] == "none", plain
assert plain[1]["loss"] != drawn[1]["loss"], (plain, drawn)
PY
status 2 "$TRAIN" --data cifar --augment flip
says "--augment: flip not in {all,crop,mirror,none}"
status 2 "$TRAIN" --data cifar --image-size 48
says "cifar: CIFAR-10's images have 32 pixels" "--resize 48"
status 2 "$TRAIN" --synthetic --fraction 0.5
says "--fraction"

# 30 images are 3 iterations of 2 × 4 and 6 more images. With equal lengths these and 2 others make a fourth iteration.
ranks 2 --synthetic --train-images 30 --test-images 4 "${tiny[@]}" --epochs 1 --sharding equal-length --log equal.jsonl >/dev/null
[ "$(grep -c '"event":"iteration"' equal.jsonl)" -eq 4 ] || fail "equal-length: $(cat equal.jsonl)"
grep -q '"images":32' equal.jsonl || fail "equal-length: $(tail -1 equal.jsonl)"
