# SPDX-License-Identifier: Apache-2.0
# usage: torch_parts.py PART: one way in which PyTorch programs use a GPU. Each prints what must be the same when it is recorded.
import os
import signal
import sys
import threading
import time

import torch
from torch import nn

torch.manual_seed(0)


def model_of(width=256):
    return nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Linear(width, width)).cuda()


def steps(model, count, width=256):
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    for _ in range(count):
        loss = model(torch.randn(64, width, device="cuda")).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss


def compiled():
    print(f"loss {steps(torch.compile(model_of()), 20).item():.2f}")


def graphs():
    model, x = model_of(), torch.randn(64, 256, device="cuda")
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            model(x)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = model(x)
    for _ in range(100):
        graph.replay()
    torch.cuda.synchronize()
    print(f"sum {y.sum().item():.2f}")


def profiler():
    steps(model_of(), 3)
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities) as profile:
        steps(model_of(), 10)
        torch.cuda.synchronize()
    time.sleep(0.5)  # the recorder has CUPTI again
    steps(model_of(), 3)
    kernels = sum(1 for event in profile.events() if event.device_type == torch.autograd.DeviceType.CUDA)
    print(f"PyTorch's profiler saw {'kernels' if kernels > 100 else f'{kernels} kernels'}")


def threads():
    def work():
        model = model_of()
        with torch.cuda.stream(torch.cuda.Stream()):
            steps(model, 50)
        torch.cuda.synchronize()
    all_threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in all_threads:
        thread.start()
    for thread in all_threads:
        thread.join()
    print("8 threads")


def fork():
    child = os.fork()
    steps(model_of(), 10)
    torch.cuda.synchronize()
    if child == 0:
        os._exit(7)
    print("the child ended with", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


def sender(queue, done):
    queue.put(torch.ones(1000, device="cuda"))
    done.wait()


def shared():
    import torch.multiprocessing as mp
    context = mp.get_context("spawn")
    queue, done = context.Queue(), context.Event()
    process = context.Process(target=sender, args=(queue, done))
    process.start()
    print("sum", queue.get().sum().item())
    done.set()
    process.join()
    print("status", process.exitcode)


def killed():
    steps(model_of(), 200)
    torch.cuda.synchronize()
    time.sleep(1.5)
    print("now", flush=True)
    os.kill(os.getpid(), signal.SIGKILL)


def memory():
    for _ in range(50):
        torch.empty(1 << 24, device="cuda").fill_(1).cpu()
    try:
        torch.empty(1 << 42, device="cuda")
    except torch.cuda.OutOfMemoryError:
        print("out of memory")
    torch.cuda.empty_cache()


def fault():
    index = torch.tensor([10_000_000], device="cuda")
    torch.zeros(4, device="cuda")[index]
    try:
        torch.cuda.synchronize()
    except RuntimeError:
        print("device-side assert")


def fsdp():
    import torch.distributed as dist
    from torch.distributed.fsdp import fully_shard
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29611", RANK="0", WORLD_SIZE="1")
    dist.init_process_group("nccl")
    model = model_of()
    for layer in model:
        if list(layer.parameters()):
            fully_shard(layer)
    fully_shard(model)
    print(f"loss {steps(model, 20).item():.2f}")
    dist.destroy_process_group()


def transformers():
    import contextlib
    import tempfile

    from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments
    model = GPT2LMHeadModel(GPT2Config(vocab_size=512, n_positions=64, n_embd=64, n_layer=2, n_head=2))
    data = [{"input_ids": torch.randint(512, (64,)), "labels": torch.randint(512, (64,))} for _ in range(256)]
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(folder, per_device_train_batch_size=8, max_steps=30, report_to=[], save_strategy="no",
                                      disable_tqdm=True, logging_strategy="no", bf16=True)
        with contextlib.redirect_stdout(sys.stderr):  # the trainer prints how long it took
            result = Trainer(model, arguments, train_dataset=data).train()
    print(f"loss {result.training_loss:.1f}")


def lightning():
    import logging
    import warnings

    import lightning as L
    warnings.simplefilter("ignore")
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)

    class Module(L.LightningModule):
        def __init__(self):
            super().__init__()
            self.model = nn.Linear(32, 1)

        def training_step(self, batch):
            return self.model(batch[0]).square().mean()

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), 0.1)

    data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(640, 32)), 16)
    trainer = L.Trainer(max_epochs=1, logger=False, enable_checkpointing=False, enable_progress_bar=False,
                        enable_model_summary=False, accelerator="gpu", devices=1)
    trainer.fit(Module(), data)
    print("steps", trainer.global_step)


if __name__ == "__main__":
    globals()[sys.argv[1]]()
