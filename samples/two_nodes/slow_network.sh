#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Two nodes of one machine with a slow network between them: what communicators, fp16 and double buffering save.
# VGG-16 with batch norm and ResNet-18 for CIFAR's size, batch 16, one rank a node; needs root, for nodes.sh.
# usage: samples/two_nodes/slow_network.sh [quick|full|tiny] [OUTPUT]      quick: 3 minutes on two slow cores
# RATE: of the network (1gbit). MODELS: "vgg16_bn resnet18"; full takes more iterations. All train with the communicator ring,
# whose second thread sleeps while the network works: that of mpi would take the core from the step that is to hide it.
source "$(dirname "$0")/../lectures/common.sh"
rate=${RATE:-1gbit}
nodes=$samples/two_nodes/nodes.sh
read -ra models <<<"${MODELS:-$(of_size vgg16_bn "vgg16_bn resnet18" "vgg16_bn resnet18")}"
iterations=$(of_size 3 10 40)
batch=$(of_size 4 16 16)
runs=$((6 * ${#models[@]}))
mkdir -p "$output"

printf '\n== 2 × 2 ranks, %s: the communicators\n' "$rate"
"$nodes" --rate "$rate" mpirun --bind-to none -n 4 paceline-train bench-allreduce \
  --sizes "$(of_size 64K 64K,8M 64K,8M,64M)" --iterations "$(of_size 2 3 10)" | tee "$output/allreduce.txt"

variants=(blocking-f32 blocking-f16 double-buffering-f32 double-buffering-f16)
top=$output
for model in "${models[@]}"; do
  output=$top/$model
  training=(--model "$model" --width "$(of_size 0.125 1 1)" --synthetic --image-size 32 --train-images 640 --test-images 16
            --lr 0.01 --schedule constant --warmup none --iterations "$iterations" --eval-every 0 --communicator ring)
  mkdir -p "$output"
  launch=("$nodes" mpirun --bind-to none --map-by node)
  record 1-rank 1
  record unlimited-f32 2
  launch=("$nodes" --rate "$rate" mpirun --bind-to none --map-by node)
  record blocking-f32 2
  record blocking-f16 2 --allreduce-dtype f16
  record double-buffering-f32 2 --updater double_buffering
  record double-buffering-f16 2 --updater double_buffering --allreduce-dtype f16
  look="'images/s' from blocking-f32 to double-buffering-f16 at $rate; the lecture's 32 GPUs became 2.1 times as fast. fp16
halves what is sent; double buffering hides of it what fits beside a step ('hidden'). VGG has more to send for its work than
ResNet."
  report 1-rank unlimited-f32 "${variants[@]}"
done
