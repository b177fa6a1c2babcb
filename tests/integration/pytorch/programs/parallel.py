# SPDX-License-Identifier: Apache-2.0
"""What torch.distributed has besides DistributedDataParallel."""
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from .common import EPOCHS, loader_of, loss_of, network, program, say, sgd, train, wide


def mesh_of(*shape, names=None):
    return dist.init_device_mesh("cpu", shape or (dist.get_world_size(),), mesh_dim_names=names)


def steps_of(model, batch=None, loss_of=lambda output: output.square().mean(), steps=48, optimizer=None):
    """A loop over one batch, without a loader."""
    optimizer = optimizer or torch.optim.SGD(model.parameters(), lr=0.01)
    if batch is None:
        batch = torch.randn(64, 256, generator=torch.Generator().manual_seed(2))
    for _ in range(steps):
        optimizer.zero_grad()
        loss = loss_of(model(batch))
        loss.backward()
        optimizer.step()
    return steps, loss


def locals_of(model):
    return [parameter.to_local() if hasattr(parameter, "to_local") else parameter for parameter in model.parameters()]


# --- DistributedDataParallel with other collectives


def hooked_ddp(register):
    dist.init_process_group("gloo")
    model = DistributedDataParallel(wide(layers=4), bucket_cap_mb=0.3)
    register(model)
    torch.manual_seed(dist.get_rank())
    say(*steps_of(model, torch.randn(64, 256)), model.parameters())
    dist.destroy_process_group()


@program()
def hook_fp16():
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

    hooked_ddp(lambda model: model.register_comm_hook(None, default_hooks.fp16_compress_hook))


@program()
def hook_power_sgd():
    from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook

    # One bucket: with several, PowerSGD on gloo can wait for ever.
    dist.init_process_group("gloo")
    model = DistributedDataParallel(wide(layers=4))
    state = powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=1, start_powerSGD_iter=2)
    model.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    say(*steps_of(model), model.parameters())
    dist.destroy_process_group()


@program()
def hook_own():
    def average(group, bucket):
        work = dist.all_reduce(bucket.buffer().div_(dist.get_world_size()), group=group, async_op=True)
        return work.get_future().then(lambda future: future.value()[0])

    hooked_ddp(lambda model: model.register_comm_hook(dist.group.WORLD, average))


@program()
def zero_redundancy():
    from torch.distributed.optim import ZeroRedundancyOptimizer

    dist.init_process_group("gloo")
    model = DistributedDataParallel(network())
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=0.001)
    say(*train(model, loader_of(), optimizer), model.parameters())
    dist.destroy_process_group()


@program(collectives=False)
def local_sgd():
    """Weights are averaged after every fourth step."""
    from torch.distributed.algorithms.model_averaging import averagers

    dist.init_process_group("gloo")
    model = network()
    optimizer, steps = sgd(model), 0
    averager = averagers.PeriodicModelAverager(period=4, warmup_steps=4)
    for _ in range(EPOCHS):
        for image, label in loader_of():
            optimizer.zero_grad()
            loss = loss_of(model, image, label)
            loss.backward()
            optimizer.step()
            averager.average_parameters(model.parameters())
            steps += 1
    say(steps, loss, model.parameters())
    dist.destroy_process_group()


@program()
def gradients_by_hand():
    """One asynchronous allreduce for each gradient."""
    dist.init_process_group("gloo")
    model = network()
    optimizer, steps = sgd(model), 0
    for _ in range(EPOCHS):
        for image, label in loader_of():
            optimizer.zero_grad()
            loss = loss_of(model, image, label)
            loss.backward()
            for work in [dist.all_reduce(parameter.grad, async_op=True) for parameter in model.parameters()]:
                work.wait()
            optimizer.step()
            steps += 1
    say(steps, loss, model.parameters())
    dist.destroy_process_group()


# --- sharded parameters


def fsdp_1(**options):
    from torch.distributed.fsdp import FullyShardedDataParallel

    dist.init_process_group("gloo")
    return FullyShardedDataParallel(network(), device_id=torch.device("cpu"), **options)


@program()
def fsdp():
    model = fsdp_1()
    say(*train(model, loader_of(), sgd(model)), [of for of in model.parameters() if of.numel() > 0])
    dist.destroy_process_group()


@program()
def fsdp_accumulate():
    model = fsdp_1(use_orig_params=True)
    say(*train(model, loader_of(), sgd(model), 2), [of for of in model.parameters() if of.numel() > 0])
    dist.destroy_process_group()


def fsdp_2(mesh, model=None):
    from torch.distributed.fsdp import fully_shard

    model = network() if model is None else model
    for module in model:
        if isinstance(module, torch.nn.Linear):
            fully_shard(module, mesh=mesh)
    return fully_shard(model, mesh=mesh)


@program(needs="torch.distributed.fsdp._fully_shard")
def fsdp2():
    dist.init_process_group("gloo")
    model = fsdp_2(mesh_of())
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.001)
    say(*train(model, loader_of(), optimizer), model.parameters())
    dist.destroy_process_group()


@program(needs="torch.distributed.fsdp._fully_shard")
def fsdp2_compile():
    dist.init_process_group("gloo")
    model = fsdp_2(mesh_of())
    for module in model:
        module.compile()
    say(*train(model, loader_of(), sgd(model)), model.parameters())
    dist.destroy_process_group()


@program(needs="torch.distributed.fsdp._fully_shard")
def hybrid_sharding():
    dist.init_process_group("gloo")
    model = fsdp_2(mesh_of(dist.get_world_size(), 1, names=("replicate", "shard")))
    say(*train(model, loader_of(), sgd(model)), model.parameters())
    dist.destroy_process_group()


@program(needs="torch.distributed.fsdp._fully_shard")
def checkpoints_of_shards():
    """torch.distributed.checkpoint, at once and in the background."""
    from torch.distributed import checkpoint
    from torch.distributed.checkpoint.state_dict import get_state_dict

    dist.init_process_group("gloo")
    model = fsdp_2(mesh_of())
    optimizer = sgd(model)
    folder = os.environ["CASE_FOLDER"]
    for number in range(2):
        steps, loss = train(model, loader_of(), optimizer)
        weights, state = get_state_dict(model, optimizer)
        checkpoint.save({"model": weights, "optimizer": state}, checkpoint_id=f"{folder}/{number}")
    checkpoint.async_save({"model": weights}, checkpoint_id=f"{folder}/later").result()
    checkpoint.load({"model": weights}, checkpoint_id=f"{folder}/1")
    say(2 * steps, loss, model.parameters())
    dist.destroy_process_group()


# --- parallel inside a model


def parallel_linears(mesh, layers=2):
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    torch.manual_seed(1)
    width = 264  # a multiple of 2 and 3
    model = torch.nn.Sequential(torch.nn.Linear(256, width), torch.nn.ReLU(), torch.nn.Linear(width, 256))
    return parallelize_module(model, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})


@program(needs="torch.distributed.tensor.parallel")
def tensor_parallel():
    dist.init_process_group("gloo")
    model = parallel_linears(mesh_of())
    say(*steps_of(model), locals_of(model))
    dist.destroy_process_group()


@program(needs="torch.distributed.tensor.parallel")
def sequence_parallel():
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, SequenceParallel, parallelize_module
    from torch.distributed.tensor import Shard

    dist.init_process_group("gloo")
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.LayerNorm(256), torch.nn.Linear(256, 264), torch.nn.ReLU(), torch.nn.Linear(264, 256))
    parallelize_module(model, mesh_of(), {
        "0": SequenceParallel(), "1": ColwiseParallel(input_layouts=Shard(1)), "3": RowwiseParallel()})  # fmt: skip
    say(*steps_of(model, torch.randn(4, 12, 256, generator=torch.Generator().manual_seed(3))), locals_of(model))
    dist.destroy_process_group()


@program(needs="torch.distributed.tensor.parallel")
def sharded_and_tensor_parallel():
    """Two dimensions of ranks; in the second one here is one rank only."""
    from torch.distributed.fsdp import fully_shard

    dist.init_process_group("gloo")
    mesh = mesh_of(1, dist.get_world_size(), names=("data", "tensor"))
    model = fully_shard(parallel_linears(mesh["tensor"]), mesh=mesh["data"])
    say(*steps_of(model), locals_of(model))
    dist.destroy_process_group()


@program(needs="torch.distributed.tensor")
def distributed_tensors():
    """A linear layer whose weight is sharded by hand."""
    from torch.distributed.tensor import Replicate, Shard, distribute_module, distribute_tensor

    dist.init_process_group("gloo")
    mesh = mesh_of()
    torch.manual_seed(1)

    def shard(name, module, mesh):
        for key, parameter in module.named_parameters(recurse=False):
            module.register_parameter(key, torch.nn.Parameter(distribute_tensor(parameter, mesh, [Shard(0)])))

    model = distribute_module(torch.nn.Sequential(torch.nn.Linear(256, 264), torch.nn.ReLU(), torch.nn.Linear(264, 12)), mesh, shard)
    batch = distribute_tensor(torch.randn(16, 256), mesh, [Replicate()])
    say(*steps_of(model, batch, lambda output: output.square().mean().full_tensor()), locals_of(model))
    dist.destroy_process_group()


def pipeline(schedule_of):
    from torch.distributed.pipelining import PipelineStage

    dist.init_process_group("gloo")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(rank)
    part = wide()
    optimizer = torch.optim.SGD(part.parameters(), lr=0.01)
    stage = PipelineStage(part, rank, ranks, torch.device("cpu"))
    schedule = schedule_of(stage, 4, loss_fn=torch.nn.functional.mse_loss)
    images, loss = torch.randn(32, 256, generator=torch.Generator().manual_seed(4)), torch.zeros(())
    for step in range(24):
        optimizer.zero_grad()
        losses = []
        if rank == 0:
            schedule.step(images)
        elif rank == ranks - 1:
            schedule.step(target=images, losses=losses)
            loss = torch.stack(losses).mean()
        else:
            schedule.step()
        optimizer.step()
    say(step + 1, loss, part.parameters())
    dist.destroy_process_group()


@program(needs="torch.distributed.pipelining", collectives=False)
def pipeline_gpipe():
    from torch.distributed.pipelining import ScheduleGPipe

    pipeline(ScheduleGPipe)


@program(needs="torch.distributed.pipelining", collectives=False)
def pipeline_1f1b():
    from torch.distributed.pipelining import Schedule1F1B

    pipeline(Schedule1F1B)


@program(needs="torch.distributed.nn")
def all_to_all():
    """Tables of embeddings that live on one rank each, as in recommendation models: two all-to-alls forwards, one back."""
    from torch.distributed.nn.functional import all_to_all_single

    dist.init_process_group("gloo")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(rank)
    table = torch.nn.EmbeddingBag(1000, 64, mode="sum")
    torch.manual_seed(1)
    dense = DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(64 * ranks, 128), torch.nn.ReLU(), torch.nn.Linear(128, 1)))
    optimizer = torch.optim.Adagrad([*table.parameters(), *dense.parameters()], lr=0.01)
    loss_of = torch.nn.BCEWithLogitsLoss()
    torch.manual_seed(rank + 7)
    for step in range(48):
        wanted = torch.randint(0, 1000, (ranks * 32, 5))  # 32 samples of this rank for each table
        asked = torch.empty_like(wanted)
        dist.all_to_all_single(asked, wanted)
        found = table(asked)
        mine = all_to_all_single(torch.empty(ranks * 32, 64), found)
        mine = mine.view(ranks, 32, 64).transpose(0, 1).reshape(32, ranks * 64)
        loss = loss_of(dense(mine), torch.rand(32, 1).round())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    say(step + 1, loss, [*table.parameters(), *dense.parameters()])
    dist.destroy_process_group()


@program(needs="torch.distributed._functional_collectives")
def functional_collectives():
    from torch.distributed import _functional_collectives as functional

    dist.init_process_group("gloo")
    model, group = wide(), dist.group.WORLD
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    torch.manual_seed(dist.get_rank())
    batch = torch.randn(16, 256)
    for step in range(48):
        loss = model(batch).square().mean()
        loss.backward()
        averages = functional.all_reduce_coalesced([parameter.grad for parameter in model.parameters()], "avg", group)
        for parameter, average in zip(model.parameters(), averages):
            parameter.grad = average + 0
        parts = functional.reduce_scatter_tensor(torch.ones(12), "sum", 0, group)
        functional.all_gather_tensor(parts, 0, group) + 0
        optimizer.step()
        optimizer.zero_grad()
    say(step + 1, loss, model.parameters())
    dist.destroy_process_group()


@program(needs="torch._dynamo", collectives=False, other="the compiled function, which is no module and waits in C++")
def compiled_collectives():
    dist.init_process_group("gloo")
    model = wide()

    @torch.compile
    def forward(batch):
        output = model(batch)
        dist.all_reduce(output.detach())
        return output

    torch.manual_seed(dist.get_rank())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    batch = torch.randn(16, 256)
    for step in range(48):
        optimizer.zero_grad()
        loss = forward(batch).square().mean()
        loss.backward()
        optimizer.step()
    say(step + 1, loss, model.parameters())
    dist.destroy_process_group()


@program(needs="torch.distributed.algorithms._checkpoint.checkpoint_wrapper")
def recomputed_activations():
    from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
    from torch.utils.checkpoint import checkpoint

    dist.init_process_group("gloo")

    class Recomputed(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = checkpoint_wrapper(wide()), wide()

        def forward(self, of):
            return checkpoint(self.second, self.first(of), use_reentrant=False)

    model = DistributedDataParallel(Recomputed())
    say(*steps_of(model), model.parameters())
    dist.destroy_process_group()


@program(collectives=False, other="sums of gradients, by hand")
def ring_of_messages():
    """Gradients go around by send and receive."""
    dist.init_process_group("gloo")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    model = wide()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    torch.manual_seed(rank)
    batch = torch.randn(16, 256)
    for step in range(48):
        optimizer.zero_grad()
        loss = model(batch).square().mean()
        loss.backward()
        for parameter in model.parameters():
            passed = parameter.grad.clone()
            for _ in range(ranks - 1):
                got = torch.empty_like(passed)
                for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, passed, (rank + 1) % ranks),
                                                    dist.P2POp(dist.irecv, got, (rank - 1) % ranks)]):
                    work.wait()
                passed = got
                parameter.grad += got
        optimizer.step()
    say(step + 1, loss, model.parameters())
    dist.destroy_process_group()


@program()
def every_collective():
    """Each collective of torch.distributed in each step, on the default group and on one of the first two ranks."""
    dist.init_process_group("gloo")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    pair = dist.new_group([0, 1])
    model = wide()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    batch, part, whole = torch.ones(4, 256), torch.ones(6), torch.ones(6 * ranks)
    for step in range(24):
        optimizer.zero_grad()
        loss = model(batch).square().mean()
        loss.backward()
        dist.all_reduce(part)
        dist.broadcast(part, 0)
        dist.reduce(part, 0)
        dist.all_gather([torch.empty(6) for _ in range(ranks)], part)
        dist.all_gather_into_tensor(whole, part)
        dist.reduce_scatter_tensor(part, whole)
        dist.gather(part, [torch.empty(6) for _ in range(ranks)] if rank == 0 else None)
        dist.scatter(part, list(whole.chunk(ranks)) if rank == 0 else None)
        dist.all_to_all_single(torch.empty(6 * ranks), whole)
        dist.barrier()
        dist.monitored_barrier()
        dist.all_gather_object([None] * ranks, {"step": step})
        dist.broadcast_object_list([step], 0)
        if rank < 2:
            dist.all_reduce(part, group=pair)
        if rank == 0:
            dist.send(part, 1)
        elif rank == 1:
            dist.recv(part, 0)
        optimizer.step()
    say(step + 1, loss, model.parameters())
    dist.destroy_process_group()


@program(needs="torch.distributed.rpc", collectives=False, other="remote calls, which are not recorded")
def remote_calls():
    """The last rank holds a part of the model; the others call it, each after the other."""
    from torch.distributed import rpc

    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    rpc.init_rpc(f"worker{rank}", rank=rank, world_size=ranks)
    model = wide()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    steps = 24
    for _ in range(steps):
        optimizer.zero_grad()
        far = rpc.rpc_sync(f"worker{ranks - 1}", torch.add, args=(model(torch.ones(4, 256)).detach(), 1))
        loss = (model(torch.ones(4, 256)) - far).square().mean()
        loss.backward()
        optimizer.step()
    say(steps, loss, model.parameters())
    rpc.shutdown()
