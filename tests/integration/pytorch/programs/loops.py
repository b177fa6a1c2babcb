# SPDX-License-Identifier: Apache-2.0
"""Training loops that scripts write themselves."""
import contextlib
import copy
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, IterableDataset

from .common import BATCH, EPOCHS, Images, ddp, loader_of, loss_of, network, program, say, sgd, train, wide


@program(ranks=1, collectives=False)
def plain():
    model = network()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.001)
    say(*train(model, loader_of(sampler=False), optimizer), model.parameters())


@program(ranks=1, collectives=False, other="the batches, which the script makes without a loader")
def minimal_gpt():
    """The loop and the model of minGPT and nanoGPT, made small: batches are cut out of one long text."""
    torch.manual_seed(1)
    text, vocabulary, width, length = torch.randint(0, 64, (20000,)), 64, 64, 32

    class Block(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.before, self.between = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)
            self.attention = torch.nn.MultiheadAttention(width, 4, batch_first=True)
            self.perceptron = torch.nn.Sequential(torch.nn.Linear(width, 4 * width), torch.nn.GELU(),
                                                  torch.nn.Linear(4 * width, width))

        def forward(self, of):
            normal = self.before(of)
            mask = torch.nn.Transformer.generate_square_subsequent_mask(of.shape[1])
            of = of + self.attention(normal, normal, normal, attn_mask=mask, need_weights=False)[0]
            return of + self.perceptron(self.between(of))

    model = torch.nn.Sequential(torch.nn.Embedding(vocabulary, width), Block(), Block(), torch.nn.Linear(width, vocabulary))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.001)
    for step in range(48):
        starts = torch.randint(len(text) - length - 1, (8,))
        given = torch.stack([text[start:start + length] for start in starts])
        wanted = torch.stack([text[start + 1:start + length + 1] for start in starts])
        loss = torch.nn.functional.cross_entropy(model(given).flatten(0, 1), wanted.flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    say(step + 1, loss, model.parameters())


@program(launch="torchrun")
def ddp_plain():
    ddp()


@program()
def ddp_accumulate():
    ddp(accumulate=3)


@program()
def ddp_no_sync():
    dist.init_process_group("gloo")
    model = DistributedDataParallel(network())
    optimizer, steps = sgd(model), 0
    for _ in range(EPOCHS):
        for number, (image, label) in enumerate(loader_of()):
            is_last = number % 2 == 1
            with contextlib.nullcontext() if is_last else model.no_sync():
                loss = loss_of(model, image, label)
                loss.backward()
            if is_last:
                optimizer.step()
                optimizer.zero_grad()
                steps += 1
    say(steps, loss, model.parameters())
    dist.destroy_process_group()


@program()
def ddp_static_graph():
    ddp(options={"static_graph": True, "gradient_as_bucket_view": True})


@program()
def ddp_unused_parameters():
    ddp(options={"find_unused_parameters": True})


@program(needs="torch._dynamo")
def ddp_compile():
    ddp(prepare=torch.compile)


@program(needs="torch._dynamo", ranks=1, collectives=False, other="the compiled function, which is no module")
def compiled_step():
    """The whole step is one compiled function, and the optimizer another one."""
    model = network()
    optimizer, loader = sgd(model), loader_of(sampler=False)

    @torch.compile
    def gradients(image, label):
        loss = loss_of(model, image, label)
        loss.backward()
        return loss

    update, steps = torch.compile(optimizer.step), 0
    for _ in range(EPOCHS):
        for image, label in loader:
            optimizer.zero_grad()
            loss = gradients(image, label)
            update()
            steps += 1
    say(steps, loss, model.parameters())


@program()
def mixed_precision():
    dist.init_process_group("gloo")
    model = DistributedDataParallel(network())
    optimizer, steps = sgd(model), 0
    for _ in range(EPOCHS):
        for image, label in loader_of():
            with torch.autocast("cpu", torch.bfloat16):
                loss = loss_of(model, image, label)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            steps += 1
    say(steps, loss, model.parameters())
    dist.destroy_process_group()


@program()
def lbfgs():
    """Several forwards and backwards in a step."""
    dist.init_process_group("gloo")
    model = DistributedDataParallel(network())
    optimizer, steps = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=3), 0
    for image, label in loader_of():
        def closure(image=image, label=label):
            optimizer.zero_grad()
            loss = loss_of(model, image, label)
            loss.backward()
            return loss
        loss = optimizer.step(closure)
        steps += 1
    say(steps, loss, model.parameters())
    dist.destroy_process_group()


@program(other="the average of the weights, and the learning rate")
def evaluation_and_checkpoints():
    dist.init_process_group("gloo")
    model = DistributedDataParallel(network())
    optimizer, steps = sgd(model), 0
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.02, total_steps=100)
    average = torch.optim.swa_utils.AveragedModel(model.module)
    for epoch in range(EPOCHS):
        model.train()
        for image, label in loader_of():
            optimizer.zero_grad()
            loss = loss_of(model, image, label)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            average.update_parameters(model.module)
            steps += 1
        model.eval()
        with torch.no_grad():
            right = sum((model.module(image).argmax(1) == label).sum() for image, label in loader_of(data=Images(64)))
        dist.all_reduce(right)
        if dist.get_rank() == 0:
            torch.save({"model": model.state_dict(), "epoch": epoch}, os.environ["CASE_FOLDER"] + "/weights")
        dist.barrier()
    say(steps, loss, average.parameters())
    dist.destroy_process_group()


class Stream(IterableDataset):
    def __iter__(self):
        images = Images(192)
        for index in range(dist.get_rank(), 192, dist.get_world_size()):
            yield images[index]


@program()
def stream():
    dist.init_process_group("gloo")
    model = DistributedDataParallel(network())
    say(*train(model, DataLoader(Stream(), BATCH), sgd(model)), model.parameters())
    dist.destroy_process_group()


@program()
def uneven_inputs():
    """The last rank has fewer batches; the others' collectives are shadowed by its join()."""
    dist.init_process_group("gloo")
    model = DistributedDataParallel(network())
    optimizer = sgd(model)
    steps = 24 - 4 * (dist.get_rank() == dist.get_world_size() - 1)
    with model.join():
        for step in range(steps):
            image = torch.randn(BATCH, 3, 16, 16, generator=torch.Generator().manual_seed(step))
            loss = loss_of(model, image, torch.arange(BATCH) % 10)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    say(steps, loss, model.parameters())
    dist.destroy_process_group()


@program(collectives=False, other="the weights, by hand")
def no_optimizer():
    """The gradient is averaged and added by hand."""
    dist.init_process_group("gloo")
    model, steps = network(), 0
    for _ in range(EPOCHS):
        for image, label in loader_of():
            loss = loss_of(model, image, label)
            loss.backward()
            with torch.no_grad():
                for parameter in model.parameters():
                    dist.all_reduce(parameter.grad)
                    parameter -= 0.01 * parameter.grad
                    parameter.grad = None
            steps += 1
    say(steps, loss, model.parameters())
    dist.destroy_process_group()


@program(needs="torch.func", ranks=1, collectives=False, other="gradients without a backward, and weights by hand")
def functions():
    """torch.func: there is no backward() either."""
    model, steps = network(), 0
    weights = {name: weight.detach() for name, weight in model.named_parameters()}
    gradients_of = torch.func.grad_and_value(lambda weights, image, label: torch.nn.functional.cross_entropy(
        torch.func.functional_call(model, weights, (image,)), label))
    for _ in range(EPOCHS):
        for image, label in loader_of(sampler=False):
            gradients, loss = gradients_of(weights, image, label)
            weights = {name: weight - 0.01 * gradients[name] for name, weight in weights.items()}
            steps += 1
    say(steps, loss, weights.values())


@program(needs="torch.distributed.optim", ranks=1, collectives=False)
def optimizers_in_backward():
    """Each parameter has an optimizer, which steps as soon as its gradient is there."""
    model, steps = network(), 0
    optimizers = {parameter: torch.optim.SGD([parameter], lr=0.01) for parameter in model.parameters()}

    def step(parameter):
        optimizers[parameter].step()
        optimizers[parameter].zero_grad()

    for parameter in optimizers:
        parameter.register_post_accumulate_grad_hook(step)
    for _ in range(EPOCHS):
        for image, label in loader_of(sampler=False):
            loss = loss_of(model, image, label)
            loss.backward()
            steps += 1
    say(steps, loss, model.parameters())


# --- several optimizers


def maker_and_judge():
    dist.init_process_group("gloo")
    torch.manual_seed(1)
    maker = torch.nn.Linear(16, 256)
    judge = torch.nn.Sequential(torch.nn.Linear(256, 128), torch.nn.Tanh(), torch.nn.Linear(128, 1))
    maker, judge = map(DistributedDataParallel, (maker, judge))
    optimizers = [torch.optim.Adam(of.parameters(), lr=0.001) for of in (maker, judge)]
    torch.manual_seed(dist.get_rank())
    return maker, judge, *optimizers


@program()
def gan():
    maker, judge, of_maker, of_judge = maker_and_judge()
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


def wgan(batches):
    """Five steps of the judge for each one of the maker; weights are clipped, gradients penalized in the last of them."""
    maker, judge, of_maker, of_judge = maker_and_judge()
    steps = 0
    for number, real in enumerate(batches):
        noise = torch.randn(len(real), 16)
        of_judge.zero_grad()
        made = maker(noise).detach()
        loss = judge(made).mean() - judge(real).mean()
        loss.backward()
        of_judge.step()
        with torch.no_grad():
            for parameter in judge.parameters():
                parameter.clamp_(-0.1, 0.1)
        if number % 5 == 0:
            of_maker.zero_grad()
            loss = -judge(maker(torch.randn(len(real), 16))).mean()
            loss.backward()
            of_maker.step()
            steps += 1
    return number + 1, steps, loss, maker.parameters()


@program()
def wgan_loader():
    """Each batch of a loader is an iteration, whichever optimizers step in it."""
    batches, _, loss, parameters = wgan(DataLoader([torch.randn(256) for _ in range(40 * 128)], 128))
    say(batches, loss, parameters)
    dist.destroy_process_group()


@program()
def wgan_without_loader():
    """The first step of the first optimizer that repeats begins an iteration: no loader says where one ends."""
    batches, _, loss, parameters = wgan([torch.randn(128, 256) for _ in range(40)])
    say(batches, loss, parameters)
    dist.destroy_process_group()


@program()
def gradient_penalty():
    """A gradient of a gradient in each step."""
    maker, judge, of_maker, of_judge = maker_and_judge()
    judge, maker = judge.module, maker.module
    for step in range(48):
        real, made = torch.randn(128, 256), maker(torch.randn(128, 16)).detach()
        share = torch.rand(128, 1)
        between = (share * real + (1 - share) * made).requires_grad_()
        slope, = torch.autograd.grad(judge(between).sum(), between, create_graph=True)
        loss = judge(made).mean() - judge(real).mean() + 10 * (slope.norm(dim=1) - 1).square().mean()
        of_judge.zero_grad()
        loss.backward()
        for parameter in judge.parameters():
            dist.all_reduce(parameter.grad)
        of_judge.step()
        of_maker.zero_grad()
        judge(maker(torch.randn(128, 16))).mean().neg().backward()
        of_maker.step()
    say(step + 1, loss, judge.parameters())
    dist.destroy_process_group()


@program(other="the game")
def policy_gradient():
    """Reinforcement learning: many forwards under no_grad gather what one step learns from."""
    dist.init_process_group("gloo")
    policy = DistributedDataParallel(wide(32))
    optimizer = torch.optim.Adam(policy.parameters(), lr=0.001)
    torch.manual_seed(dist.get_rank())
    for step in range(24):
        state, states, actions, rewards = torch.zeros(16, 32), [], [], []
        with torch.no_grad():
            for _ in range(20):
                action = torch.distributions.Categorical(logits=policy.module(state)).sample()
                states.append(state)
                actions.append(action)
                state = 0.9 * state + torch.nn.functional.one_hot(action, 32)
                rewards.append(state.sum(1))
        chosen = torch.distributions.Categorical(logits=policy(torch.cat(states)))
        loss = -(chosen.log_prob(torch.cat(actions)) * torch.cat(rewards)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    say(step + 1, loss, policy.parameters())
    dist.destroy_process_group()


@program()
def teacher_and_student():
    dist.init_process_group("gloo")
    student, teacher = DistributedDataParallel(network()), copy.deepcopy(network()).eval()
    optimizer, steps = sgd(student), 0
    for _ in range(EPOCHS):
        for image, label in loader_of():
            with torch.no_grad():
                wanted = teacher(image).softmax(1)
            loss = torch.nn.functional.cross_entropy(student(image), wanted)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            steps += 1
    say(steps, loss, student.parameters())
    dist.destroy_process_group()
