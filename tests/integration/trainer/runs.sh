#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: runs.sh PACELINE-TRAIN COMPARE-CHECKPOINTS
# Whole runs on 1 and 2 ranks: the log, the counts, and equal training on any number of ranks.
source "$(dirname "$0")/setup.sh"
compare=$2
"$TRAIN" make-dataset data --train 40 --test 11 --seed 3 >/dev/null
small=(--synthetic --image-size 32 --width 0.125 --train-images 26 --test-images 11 --lr 0.01)

# On two ranks 26 images are 3 iterations of 2 × 4 with 2 images left over. --iterations ends the second epoch early.
# The 11 test images are counted once each.
ranks 2 "${small[@]}" --batch-size 4 --iterations 5 --log log.jsonl >stdout 2>stderr
[ "$(grep -c '^epoch [12]/2: loss .* test accuracy .* images/s, .* GFLOP/s' stdout)" -eq 2 ] || fail "$(cat stdout)"
[ "$(wc -l <stdout)" -eq 3 ] || fail "more than the epochs and the end: $(cat stdout)"
python3 - <<'PY'
import json
lines = [json.loads(line) for line in open("log.jsonl")]
assert [line["event"] for line in lines] == ["start"] + ["iteration"] * 3 + ["epoch"] + ["iteration"] * 2 + ["epoch", "end"], lines
start, end = lines[0], lines[-1]
expected = {"program": "paceline-train", "model": "resnet18 width 0.125", "batch_per_rank": 4, "global_batch": 8,
            "images_per_iteration": 8, "dtype": "f32", "communicator": "mpi", "updater": "allreduce", "seed": 1,
            "epochs": 5 / 3, "ranks": 2, "evaluate": "all ranks"}
for key, value in expected.items():
    assert start[key] == value, (key, start[key])
assert start["flops_per_image"] > 1e6, start
assert [line["iteration"] for line in lines if line["event"] == "iteration"] == list(range(5))
assert all(line["loss"] > 0 and line["seconds"] > 0 for line in lines if line["event"] == "iteration")
for number, epoch in enumerate([line for line in lines if line["event"] == "epoch"], 1):
    assert epoch["epoch"] == number and epoch["train_loss"] > 0 and epoch["images_per_s"] > 0, epoch
    assert epoch["test_images"] == 11, epoch
    assert abs(epoch["gflops"] / (1e-9 * start["flops_per_image"] * epoch["images_per_s"]) - 1) < 1e-6, (epoch, start)
    assert abs(epoch["test_accuracy"] * 11 - round(epoch["test_accuracy"] * 11)) < 1e-9, epoch
    images = 24 if number == 1 else 16
    assert abs(epoch["train_accuracy"] * images - round(epoch["train_accuracy"] * images)) < 1e-9, epoch
assert end["images"] == 40 and end["steady_images_per_s"] > 0, end
assert abs(end["images_per_s"] - end["images"] / end["seconds"]) < 1e-9, end
PY

# Only on a terminal a progress line is shown. It is removed before other output and at the end of the run.
[ ! -s stderr ] || fail "progress without a terminal: $(cat stderr)"
python3 - "$TRAIN" "${small[@]}" --batch-size 4 --epochs 2 --threads 1 <<'PY'
import os, pty, signal, subprocess, sys
def on_a_terminal(arguments, interrupt=False):
    main, terminal = pty.openpty()
    process = subprocess.Popen(arguments, stdout=terminal, stderr=terminal, close_fds=True)
    os.close(terminal)
    text = b""
    while True:
        try:
            piece = os.read(main, 65536)
        except OSError:
            break
        if interrupt and b"images/s  loss" in text + piece:
            process.send_signal(signal.SIGINT)
            interrupt = False
        text += piece
    return process.wait(), text.decode()
def lines_left(text):  # what a terminal shows in the end
    return [line.split("\r")[-1].replace("\033[K", "") for line in text.replace("\r\n", "\n").split("\n")]
status, text = on_a_terminal(sys.argv[1:])
assert status == 0, text
assert "\repoch 1/2 [" in text and "/6" in text and "images/s  loss" in text and " left" in text, text
left = lines_left(text)
assert len(left) == 4 and left[0].startswith("epoch 1/2: loss") and left[1].startswith("epoch 2/2: loss") and left[3] == "", left
status, text = on_a_terminal(sys.argv[1:-3] + ["100000", "--threads", "1"], interrupt=True)
assert status == 1, (status, text[-500:])
left = lines_left(text)
assert left[-2].startswith("paceline-train: interrupted: stopped after iteration") and left[-1] == "", left[-3:]
PY

# Equal weights have the same number of correct test images for any number of ranks and any batch.
ranks 1 --data data --width 0.125 --batch-size 8 --epochs 1 --checkpoint run.checkpoint >/dev/null
for count in 1 3; do
  ranks "$count" --data data --width 0.125 --batch-size 5 --epochs 1 --checkpoint run.checkpoint --resume --log "$count.jsonl" >"$count.out"
done
grep -q ' of 11 test images right' 1.out || fail "$(cat 1.out)"
cmp <(grep complete 1.out) <(grep complete 3.out) || fail "the counts differ"
grep -q '^resumed with ranks: 3, where the checkpoint.s run had 1$' 3.out || fail "$(cat 3.out)"

# Two ranks with batch b take the step of one with batch 2b if no batch statistics are used.
same=(--synthetic --image-size 32 --train-images 26 --test-images 11 --lr 0.01 --schedule constant --warmup-epochs 0 --iterations 1 --freeze-batch-norm --eval-every 0)
ranks 1 "${same[@]}" --batch-size 8 --checkpoint one.checkpoint >/dev/null
ranks 2 "${same[@]}" --batch-size 4 --checkpoint two.checkpoint >/dev/null
"$compare" one.checkpoint two.checkpoint 10 32 1e-5 || fail "two ranks take another step than one"

# The comparison of libraries: host MPI is available, a missing library is listed with the reason, and sums are exact
# with another ring order.
mpirun --bind-to none -n 2 "$TRAIN" bench-allreduce --libraries --sizes 4K,100K --iterations 2 --ring-order 1,0 >bench.out ||
  fail "$(cat bench.out)"
grep -qE '^ +4096 +[0-9.]+ +[0-9.]+' bench.out && grep -q 'host MPI' bench.out || fail "$(cat bench.out)"
! grep -q wrong bench.out || fail "$(cat bench.out)"
for library in "CUDA-aware MPI" NCCL; do
  grep -q -e "^left out: $library: ." -e " $library:  *time" bench.out || fail "nothing about $library: $(cat bench.out)"
done
status 2 mpirun --bind-to none -n 2 "$TRAIN" bench-allreduce --ring-order 0,0 --sizes 4K
grep -q -- '--ring-order 0,0: rank 0 is there twice' stderr || fail "$(cat stderr)"
