# SPDX-License-Identifier: Apache-2.0
"""Trainers and models of other people."""
import logging
import os
import warnings

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader

from .common import BATCH, EPOCHS, Images, loader_of, loss_of, network, program, say, sgd, train


def ranks():
    return int(os.environ.get("WORLD_SIZE", "1"))


# --- Lightning


def lightning_trainer(lightning, **options):
    logging.getLogger("lightning").setLevel(logging.ERROR)
    warnings.simplefilter("ignore")
    return lightning.Trainer(accelerator="cpu", devices=ranks(), strategy="ddp", max_epochs=EPOCHS, logger=False,
                             enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False, **options)


def lightning_module(lightning):
    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.network = network()
            self.loss = 0

        def training_step(self, batch, index):
            self.loss = loss_of(self.network, *batch)
            return self.loss

        def validation_step(self, batch, index):
            self.log("accuracy", (self.network(batch[0]).argmax(1) == batch[1]).float().mean(), sync_dist=True)

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.01)

    return Module()


@program(needs="lightning", launch="torchrun")
def lightning():
    import lightning

    module, trainer = lightning_module(lightning), lightning_trainer(lightning)
    trainer.fit(module, DataLoader(Images(), BATCH), DataLoader(Images(64), BATCH))
    say(trainer.global_step, module.loss, module.parameters())


@program(needs="lightning", launch="torchrun", other="Lightning's own work for each batch")
def lightning_accumulate():
    import lightning

    module = lightning_module(lightning)
    trainer = lightning_trainer(lightning, accumulate_grad_batches=2, gradient_clip_val=1.0)
    trainer.fit(module, DataLoader(Images(), BATCH))
    say(trainer.global_step, module.loss, module.parameters())


@program(needs="lightning", launch="torchrun", other="Lightning's own work for each batch")
def lightning_gan():
    """Two optimizers, which the module steps itself."""
    import lightning

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.automatic_optimization = False
            torch.manual_seed(1)
            self.maker, self.judge = torch.nn.Linear(16, 256), torch.nn.Linear(256, 1)

        def training_step(self, batch, index):
            of_maker, of_judge = self.optimizers()
            noise = torch.ones(BATCH, 16)
            self.toggle_optimizer(of_judge)
            of_judge.zero_grad()
            self.manual_backward((self.judge(self.maker(noise).detach()) - self.judge(batch)).square().mean())
            of_judge.step()
            self.untoggle_optimizer(of_judge)
            self.toggle_optimizer(of_maker)
            of_maker.zero_grad()
            self.loss = self.judge(self.maker(noise)).square().mean()
            self.manual_backward(self.loss)
            of_maker.step()
            self.untoggle_optimizer(of_maker)

        def configure_optimizers(self):
            return [torch.optim.SGD(of.parameters(), lr=0.01) for of in (self.maker, self.judge)]

    module, data = Module(), [torch.full((256,), index / 100) for index in range(384)]
    trainer = lightning_trainer(lightning)
    trainer.strategy._ddp_kwargs["find_unused_parameters"] = True
    trainer.fit(module, DataLoader(data, BATCH))
    say(trainer.global_step // 2, module.loss, module.parameters())


@program(needs="lightning.fabric", launch="torchrun")
def lightning_fabric():
    from lightning.fabric import Fabric

    fabric = Fabric(accelerator="cpu", devices=ranks(), strategy="ddp")
    fabric.launch()
    model = network()
    model, optimizer = fabric.setup(model, sgd(model))
    loader, steps = fabric.setup_dataloaders(DataLoader(Images(), BATCH)), 0
    for _ in range(EPOCHS):
        for image, label in loader:
            optimizer.zero_grad()
            loss = loss_of(model, image, label)
            fabric.backward(loss)
            optimizer.step()
            steps += 1
    say(steps, loss, model.parameters())


# --- Hugging Face


def accelerated(**options):
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True, **options)
    model = network()
    model, optimizer, loader = accelerator.prepare(model, sgd(model), DataLoader(Images(), BATCH))
    batches = 0
    for _ in range(EPOCHS):
        for image, label in loader:
            with accelerator.accumulate(model):
                loss = loss_of(model, image, label)
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad()
            batches += 1
    say(batches // options.get("gradient_accumulation_steps", 1), loss, model.parameters())
    accelerator.end_training()


@program(needs="accelerate")
def accelerate():
    accelerated()


@program(needs="accelerate")
def accelerate_accumulate():
    accelerated(gradient_accumulation_steps=2)


def language_model(transformers, **more):
    torch.manual_seed(1)
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(
        vocab_size=128, n_positions=64, n_embd=128, n_layer=2, n_head=2, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0))


def sentences(count=256):
    generator = torch.Generator().manual_seed(2)
    return [{"input_ids": tokens, "labels": tokens} for tokens in torch.randint(0, 128, (count, 64), generator=generator)]


def trained(change=lambda model: model, **options):
    import transformers

    model = change(language_model(transformers))
    arguments = transformers.TrainingArguments(
        os.environ["CASE_FOLDER"], num_train_epochs=EPOCHS, per_device_train_batch_size=8, use_cpu=True, report_to=[],
        save_steps=12, disable_tqdm=True, logging_steps=8, ddp_backend="gloo", **options)
    trainer = transformers.Trainer(model, arguments, train_dataset=sentences(), eval_dataset=sentences(64))
    result = trainer.train()
    say(result.global_step, result.training_loss, model.parameters())


@program(needs="transformers", other="the Trainer's own work for each batch")
def transformers_accumulate():
    trained(gradient_accumulation_steps=2)


@program(needs="transformers", other="the Trainer's own work for each batch")
def transformers_evaluate():
    trained(eval_strategy="steps", eval_steps=12, dataloader_num_workers=1, bf16=True)


@program(needs="peft", other="the Trainer's own work for each batch")
def peft_lora():
    import peft

    trained(lambda model: peft.get_peft_model(model, peft.LoraConfig(r=4, target_modules=["c_attn"], fan_in_fan_out=True)))


# --- others


def ddp_of(model, images=96, edge=32, parameters=None):
    """A loop over images of a model of another package."""
    dist.init_process_group("gloo")
    model = DistributedDataParallel(model)
    data = [(torch.randn(3, edge, edge, generator=torch.Generator().manual_seed(index)), index % 10) for index in range(images)]
    say(*train(model, loader_of(data=data, batch=8), sgd(model)), model.parameters())
    dist.destroy_process_group()


@program(needs="timm")
def timm_vit():
    import timm

    torch.manual_seed(1)
    ddp_of(timm.create_model("vit_tiny_patch16_224", img_size=32, patch_size=8, depth=2, num_classes=10))


@program(needs="timm")
def timm_training():
    """A convolutional network with timm's loss, mix of images, optimizer, schedule and average of the weights."""
    import timm
    from timm import data, loss, optim, scheduler, utils

    dist.init_process_group("gloo")
    torch.manual_seed(1)
    plain = timm.create_model("resnet10t", num_classes=10)
    model = DistributedDataParallel(plain)
    mix = data.Mixup(0.2, num_classes=10)
    average, loss_of = utils.ModelEmaV3(plain), loss.SoftTargetCrossEntropy()
    optimizer = optim.create_optimizer_v2(model, "lamb", lr=0.001)
    schedule = scheduler.CosineLRScheduler(optimizer, 40)
    import numpy
    numpy.random.seed(1)
    steps = 0
    for _ in range(EPOCHS):
        for image, label in loader_of(data=Images(96), batch=8):
            image, label = mix(image, label)
            loss = loss_of(model(image), label)
            optimizer.zero_grad()
            loss.backward()
            utils.dispatch_clip_grad(model.parameters(), 1.0)
            optimizer.step()
            steps += 1
            average.update(plain, steps)
            schedule.step_update(steps)
    say(steps, loss, average.parameters())
    dist.destroy_process_group()


@program(needs="torchvision")
def torchvision_resnet():
    import torchvision

    torch.manual_seed(1)
    ddp_of(torchvision.models.resnet18(num_classes=10), images=48)


@program(needs="torchvision")
def torchvision_detection():
    """The model computes its losses itself, from lists of images and boxes."""
    import torchvision

    dist.init_process_group("gloo")
    torch.manual_seed(1)
    model = DistributedDataParallel(torchvision.models.detection.ssdlite320_mobilenet_v3_large(
        weights=None, weights_backbone=None, num_classes=3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    images = [torch.rand(3, 96, 96, generator=torch.Generator().manual_seed(index)) for index in range(4)]
    targets = [{"boxes": torch.tensor([[5.0, 5.0, 60.0, 60.0]]), "labels": torch.tensor([1])} for _ in images]
    for step in range(6):
        loss = sum(model(images, targets).values())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    say(step + 1, loss, model.parameters())
    dist.destroy_process_group()


def deepspeed_engine(stage):
    """DeepSpeed's engine on CPUs, with gloo."""
    os.environ.update(DS_ACCELERATOR="cpu", DS_BUILD_OPS="0")
    import deepspeed

    deepspeed.logger.setLevel(logging.ERROR)
    model = network()
    configuration = {"train_micro_batch_size_per_gpu": BATCH, "gradient_accumulation_steps": 2,
                     "optimizer": {"type": "AdamW", "params": {"lr": 0.001, "torch_adam": True}},
                     "zero_optimization": {"stage": stage}, "zero_allow_untested_optimizer": True}
    deepspeed.init_distributed("gloo")
    engine, *_ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config=configuration)
    batches = 0
    for _ in range(EPOCHS):
        for image, label in loader_of():
            loss = loss_of(engine, image, label)
            engine.backward(loss)
            engine.step()
            batches += 1
    say(batches // 2, loss, model.parameters())
    dist.destroy_process_group()


@program(needs="deepspeed", other="the engine's own work for each batch")
def deepspeed_0():
    deepspeed_engine(0)


@program(needs="deepspeed", other="the engine's own work for each batch")
def deepspeed_2():
    deepspeed_engine(2)


@program(needs="ignite", other="the average of the weights")
def ignite():
    from ignite.engine import Events, create_supervised_trainer
    from ignite.handlers import EMAHandler

    dist.init_process_group("gloo")
    model = DistributedDataParallel(network())
    trainer = create_supervised_trainer(model, sgd(model), torch.nn.functional.cross_entropy)
    EMAHandler(model.module, momentum=0.01).attach(trainer, event=Events.ITERATION_COMPLETED)
    state = trainer.run(loader_of(), max_epochs=EPOCHS)
    say(state.iteration, state.output, model.parameters())
    dist.destroy_process_group()


@program(needs="skorch", ranks=1, collectives=False)
def skorch():
    import numpy
    from skorch import NeuralNetClassifier

    images = numpy.stack([image.numpy() for image, _ in Images(192)])
    labels = numpy.arange(192) % 10
    torch.manual_seed(1)
    net = NeuralNetClassifier(network, criterion=torch.nn.CrossEntropyLoss, max_epochs=2, batch_size=16, lr=0.01,
                              train_split=None, verbose=0)
    net.fit(images, labels)
    say(24, net.history[-1, "train_loss"], net.module_.parameters())


@program(needs="opacus", ranks=1, collectives=False)
def opacus():
    """Private training: a gradient for each sample, and noise."""
    warnings.simplefilter("ignore")
    from opacus import PrivacyEngine

    model = network()
    model, optimizer, loader = PrivacyEngine().make_private(
        module=model, optimizer=sgd(model), data_loader=loader_of(sampler=False), noise_multiplier=1.0,
        max_grad_norm=1.0, poisson_sampling=False)
    say(*train(model, loader, optimizer), model.parameters())


@program(needs="x_transformers")
def x_transformers():
    from x_transformers import AutoregressiveWrapper, Decoder, TransformerWrapper

    dist.init_process_group("gloo")
    torch.manual_seed(1)
    model = DistributedDataParallel(AutoregressiveWrapper(TransformerWrapper(
        num_tokens=64, max_seq_len=64, attn_layers=Decoder(dim=64, depth=2, heads=2))))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.001)
    for step in range(24):
        optimizer.zero_grad()
        loss = model(torch.randint(0, 64, (4, 64), generator=torch.Generator().manual_seed(step)))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
    say(step + 1, loss, model.parameters())
    dist.destroy_process_group()


@program(needs="torch_geometric")
def torch_geometric():
    """Graphs, in batches of a loader of its own."""
    from torch_geometric.data import Data
    from torch_geometric.loader import DataLoader as GraphLoader
    from torch_geometric.nn import GCNConv, global_mean_pool

    class Network(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second, self.last = GCNConv(32, 64), GCNConv(64, 64), torch.nn.Linear(64, 4)

        def forward(self, data):
            of = self.first(data.x, data.edge_index).relu()
            return self.last(global_mean_pool(self.second(of, data.edge_index).relu(), data.batch))

    dist.init_process_group("gloo")
    torch.manual_seed(1)
    graphs = [Data(x=torch.randn(40, 32), edge_index=torch.randint(0, 40, (2, 200)), y=torch.tensor([number % 4]))
              for number in range(192)]
    model, steps = DistributedDataParallel(Network()), 0
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    mine = graphs[dist.get_rank()::dist.get_world_size()]
    for _ in range(EPOCHS):
        for data in GraphLoader(mine, batch_size=8):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(data), data.y)
            loss.backward()
            optimizer.step()
            steps += 1
    say(steps, loss, model.parameters())
    dist.destroy_process_group()


@program(needs="fairscale")
def fairscale_sharded():
    from fairscale.nn.data_parallel import ShardedDataParallel
    from fairscale.optim.oss import OSS

    dist.init_process_group("gloo")
    model = network()
    optimizer = OSS(model.parameters(), torch.optim.SGD, lr=0.01)
    model = ShardedDataParallel(model, optimizer)
    say(*train(model, loader_of(), optimizer), model.parameters())
    dist.destroy_process_group()


@program(needs="torchrec")
def torchrec():
    """TorchRec's sharded tables of embeddings, which exchange by all-to-all."""
    from torchrec import EmbeddingBagCollection, EmbeddingBagConfig, KeyedJaggedTensor
    from torchrec.distributed import DistributedModelParallel

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.tables = EmbeddingBagCollection(tables=[
                EmbeddingBagConfig(name=name, embedding_dim=16, num_embeddings=200, feature_names=[name]) for name in "ab"])
            self.last = torch.nn.Linear(32, 1)

        def forward(self, features):
            return self.last(self.tables(features).values())

    dist.init_process_group("gloo")
    torch.manual_seed(1)
    model = DistributedModelParallel(Model(), device=torch.device("cpu"))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    torch.manual_seed(dist.get_rank())
    for step in range(24):
        features = KeyedJaggedTensor.from_lengths_sync(["a", "b"], torch.randint(0, 200, (64,)), torch.full((32,), 2))
        loss = model(features).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    say(step + 1, loss, [parameter for parameter in model.parameters() if type(parameter) is torch.nn.Parameter])
    dist.destroy_process_group()


@program(needs="ray.train", launch="self")
def ray_train():
    """Ray starts the ranks."""
    os.environ["RAY_DEDUP_LOGS"] = "0"  # else lines of several ranks come as one
    warnings.simplefilter("ignore")
    import ray
    from ray.train import ScalingConfig
    from ray.train.torch import TorchConfig, TorchTrainer

    counts = os.environ.get("CASE_COUNTS")

    def loop():
        import ray.train.torch
        if counts:
            os.environ["RANK"] = str(ray.train.get_context().get_world_rank())
            from programs import counting
            write = counting.count_in(counts)
        model = ray.train.torch.prepare_model(network())
        loader = ray.train.torch.prepare_data_loader(DataLoader(Images(), BATCH))
        steps, loss = train(model, loader, sgd(model))
        if counts:
            write()
        say(steps, loss, model.parameters(), ray.train.get_context().get_world_rank())

    ray.init(num_cpus=int(os.environ["RANKS"]) + 1, include_dashboard=False)
    TorchTrainer(loop, torch_config=TorchConfig("gloo"), scaling_config=ScalingConfig(num_workers=int(os.environ["RANKS"]))).fit()
