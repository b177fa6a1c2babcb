# SPDX-License-Identifier: Apache-2.0
# usage: torchrun … ddp.py BACKEND SLEEP_MS: 30 steps of DDP whose batches come from worker processes; the last rank sleeps in
# each step before its backward pass.
import os
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, Dataset, DistributedSampler

backend, sleep_ms = sys.argv[1], float(sys.argv[2])


class Random(Dataset):
    def __len__(self):
        return 30 * 32 * dist.get_world_size()

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        return torch.randn(3, 32, 32, generator=generator), index % 10


# NCCL refuses two ranks on one GPU, but not two ranks of different hosts.
os.environ["NCCL_HOSTID"] = os.environ["RANK"]
dist.init_process_group(backend)
torch.manual_seed(0)
torch.cuda.set_device(0)
model = nn.Sequential(nn.Conv2d(3, 64, 3, padding=1), nn.ReLU(), nn.Conv2d(64, 128, 3, padding=1), nn.ReLU(), nn.Flatten(),
                      nn.Linear(128 * 32 * 32, 64), nn.ReLU(), nn.Linear(64, 10)).cuda()
model = nn.parallel.DistributedDataParallel(model, device_ids=[0])
optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
data = Random()
loader = DataLoader(data, 32, sampler=DistributedSampler(data), num_workers=2, pin_memory=True)
for images, labels in loader:
    images, labels = images.cuda(non_blocking=True), labels.cuda(non_blocking=True)
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(images), labels)
    if dist.get_rank() == dist.get_world_size() - 1:
        time.sleep(sleep_ms / 1e3)
    loss.backward()
    optimizer.step()
if dist.get_rank() == 0:
    print(f"loss {loss.item():.3f}")
dist.destroy_process_group()
