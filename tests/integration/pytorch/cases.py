#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Small PyTorch programs of many kinds, each started by torchrun: cases.py CASE. None of them knows Paceline.

Each rank prints one line with the number of optimizer steps, the loss and a hash of the weights.
"""
import hashlib
import os
import sys

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler

BATCH, IMAGES, EPOCHS = 16, 384, 2


class Images(Dataset):
    def __init__(self, count=IMAGES):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        return torch.randn(3, 16, 16, generator=generator), index % 10


def network():
    torch.manual_seed(1)
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 32, 3, padding=1), torch.nn.ReLU(), torch.nn.Conv2d(32, 64, 3, padding=1), torch.nn.ReLU(),
        torch.nn.MaxPool2d(2), torch.nn.Flatten(), torch.nn.Linear(64 * 64, 128), torch.nn.ReLU(),
        torch.nn.Linear(128, 10))


def hash_of(parameters):
    weights = hashlib.sha256()
    for parameter in parameters:
        if hasattr(parameter, "full_tensor"):
            parameter = parameter.full_tensor()
        weights.update(parameter.detach().cpu().contiguous().numpy().tobytes())
    return weights.hexdigest()[:16]


def say(steps, loss, parameters):
    line = f"rank {os.environ.get('RANK', '0')}: steps {steps}, loss {float(torch.as_tensor(loss).detach()):.9f}, weights {hash_of(parameters)}"
    sys.stdout.write(line + "\n")  # in one piece, because the ranks share the file
    sys.stdout.flush()


def loader_of(workers=0, method=None, persistent=False, sampler=True):
    data = Images()
    return DataLoader(data, BATCH, sampler=DistributedSampler(data) if sampler else None, num_workers=workers,
                      multiprocessing_context=method, persistent_workers=persistent)


def train(model, loader, optimizer, accumulate=1):
    loss_of = torch.nn.CrossEntropyLoss()
    steps = 0
    for _ in range(EPOCHS):
        for number, (image, label) in enumerate(loader):
            loss = loss_of(model(image), label)
            loss.backward()
            if (number + 1) % accumulate == 0:
                optimizer.step()
                optimizer.zero_grad()
                steps += 1
    return steps, loss


def ddp(prepare=lambda model: model, accumulate=1, **loading):
    dist.init_process_group("gloo")
    model = prepare(torch.nn.parallel.DistributedDataParallel(network()))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    say(*train(model, loader_of(**loading), optimizer, accumulate), model.parameters())
    dist.destroy_process_group()


def plain():
    model = network()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.001)
    say(*train(model, loader_of(sampler=False), optimizer), model.parameters())


def two_optimizers():
    dist.init_process_group("gloo")
    maker, judge = torch.nn.Linear(16, 256), torch.nn.Sequential(torch.nn.Linear(256, 128), torch.nn.Linear(128, 1))
    for model in (maker, judge):
        for parameter in model.parameters():
            torch.nn.init.constant_(parameter, 0.01)
    maker, judge = map(torch.nn.parallel.DistributedDataParallel, (maker, judge))
    of_maker = torch.optim.Adam(maker.parameters(), lr=0.001)
    of_judge = torch.optim.Adam(judge.parameters(), lr=0.001)
    torch.manual_seed(dist.get_rank())
    real = torch.randn(512, 256)
    for step in range(48):
        noise = torch.randn(512, 16)
        of_judge.zero_grad()
        judge(torch.cat([maker(noise).detach(), real])).square().mean().backward()
        of_judge.step()
        of_maker.zero_grad()
        loss = judge(maker(noise)).square().mean()
        loss.backward()
        of_maker.step()
    say(step + 1, loss, maker.parameters())
    dist.destroy_process_group()


def fsdp():
    from torch.distributed.fsdp import FullyShardedDataParallel

    dist.init_process_group("gloo")
    model = FullyShardedDataParallel(network(), device_id=torch.device("cpu"))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    steps, loss = train(model, loader_of(), optimizer)
    say(steps, loss, [parameter for parameter in model.parameters() if parameter.numel() > 0])
    dist.destroy_process_group()


def fsdp2():
    from torch.distributed.fsdp import fully_shard

    dist.init_process_group("gloo")
    mesh = dist.init_device_mesh("cpu", (dist.get_world_size(),))
    model = network()
    for module in model:
        if isinstance(module, torch.nn.Linear):
            fully_shard(module, mesh=mesh)
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.001)
    say(*train(model, loader_of(), optimizer), model.parameters())
    dist.destroy_process_group()


def tensor_parallel():
    """Functional collectives, called from C++ through DTensor."""
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    dist.init_process_group("gloo")
    mesh = dist.init_device_mesh("cpu", (dist.get_world_size(),))
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 256))
    parallelize_module(model, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    batch = torch.randn(8, 256)
    for step in range(48):
        optimizer.zero_grad()
        loss = model(batch).square().mean()
        loss.backward()
        optimizer.step()
    say(step + 1, loss, [parameter.to_local() for parameter in model.parameters()])
    dist.destroy_process_group()


def lightning():
    import lightning

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.network = network()
            self.loss = 0

        def training_step(self, batch, index):
            self.loss = torch.nn.functional.cross_entropy(self.network(batch[0]), batch[1])
            return self.loss

        def validation_step(self, batch, index):
            self.log("accuracy", (self.network(batch[0]).argmax(1) == batch[1]).float().mean(), sync_dist=True)

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.01)

    module = Module()
    ranks = int(os.environ.get("WORLD_SIZE", "1"))
    trainer = lightning.Trainer(accelerator="cpu", devices=ranks, strategy="ddp", max_epochs=EPOCHS, logger=False,
                                enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
    trainer.fit(module, DataLoader(Images(), BATCH), DataLoader(Images(64), BATCH))
    say(trainer.global_step, module.loss, module.parameters())


def accelerate():
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True)
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    model, optimizer, loader = accelerator.prepare(model, optimizer, DataLoader(Images(), BATCH))
    steps = 0
    for _ in range(EPOCHS):
        for image, label in loader:
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(image), label)
            accelerator.backward(loss)
            optimizer.step()
            steps += 1
    say(steps, loss, model.parameters())
    accelerator.end_training()


def transformers():
    import transformers

    config = transformers.GPT2Config(vocab_size=128, n_positions=64, n_embd=128, n_layer=2, n_head=2, resid_pdrop=0,
                                     embd_pdrop=0, attn_pdrop=0)
    torch.manual_seed(1)
    model = transformers.GPT2LMHeadModel(config)
    generator = torch.Generator().manual_seed(2)
    data = [{"input_ids": tokens, "labels": tokens} for tokens in torch.randint(0, 128, (256, 64), generator=generator)]
    folder = os.environ["CASE_FOLDER"]
    arguments = transformers.TrainingArguments(
        folder, num_train_epochs=EPOCHS, per_device_train_batch_size=8, gradient_accumulation_steps=2, use_cpu=True,
        report_to=[], save_steps=12, disable_tqdm=True, logging_steps=8, ddp_backend="gloo")
    trainer = transformers.Trainer(model, arguments, train_dataset=data)
    result = trainer.train()
    say(result.global_step, result.training_loss, model.parameters())


CASES = {
    "plain": plain,
    "ddp": ddp,
    "ddp-fork": lambda: ddp(workers=2, method="fork"),
    "ddp-fork-persistent": lambda: ddp(workers=2, method="fork", persistent=True),
    "ddp-spawn": lambda: ddp(workers=1, method="spawn"),
    "ddp-spawn-persistent": lambda: ddp(workers=1, method="spawn", persistent=True),
    "ddp-accumulate": lambda: ddp(accumulate=3),
    "ddp-compile": lambda: ddp(prepare=torch.compile),
    "two-optimizers": two_optimizers,
    "fsdp": fsdp,
    "fsdp2": fsdp2,
    "tensor-parallel": tensor_parallel,
    "lightning": lightning,
    "accelerate": accelerate,
    "transformers": transformers,
}

if __name__ == "__main__":
    torch.set_num_threads(1)
    CASES[sys.argv[1]]()
