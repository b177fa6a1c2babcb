# SPDX-License-Identifier: Apache-2.0
"""torchtitan's debug model of Llama 3. It was written for GPUs: what CPUs and gloo lack is put in its place here."""
import json
import os
import random
import tempfile

import torch
import torch.distributed as dist

from .common import program, say

WORDS, STEPS = 900, 12


def write_assets(folder):
    """A tokenizer and a dataset of random words, where the debug model looks for them."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    numbers = random.Random(0)
    words = [f"w{number}" for number in range(WORDS)]
    for name in ("tokenizer", "c4_test"):
        os.makedirs(f"{folder}/tests/assets/{name}")
    with open(f"{folder}/tests/assets/c4_test/data.json", "w") as file:
        for _ in range(500):
            file.write(json.dumps({"text": " ".join(numbers.choices(words, k=120))}) + "\n")
    names = {word: number for number, word in enumerate(["<unk>", "<s>", "</s>", *words])}
    tokenizer = Tokenizer(models.WordLevel(names, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.add_special_tokens(["<s>", "</s>"])
    tokenizer.save(f"{folder}/tests/assets/tokenizer/tokenizer.json")
    with open(f"{folder}/tests/assets/tokenizer/tokenizer_config.json", "w") as file:
        json.dump({"bos_token": "<s>", "eos_token": "</s>", "add_bos_token": True, "add_eos_token": True}, file)


def use_cpus():
    """torchtitan takes CUDA where torch names no device, and torch.cpu lacks some of the functions of torch.cuda."""
    import torch._utils

    class Properties:
        name, total_memory, multi_processor_count = "cpu", 1 << 33, 1

    torch._utils._get_available_device_type = lambda: "cpu"
    memory = {name: 0 for name in ("active_bytes.all.peak", "reserved_bytes.all.peak", "num_alloc_retries", "num_ooms")}
    torch.cpu.current_device = lambda: 0
    for name, value in (("get_device_properties", Properties), ("get_device_name", "cpu"), ("memory_stats", memory),
                        ("reset_peak_memory_stats", None), ("empty_cache", None), ("manual_seed", None)):
        if not hasattr(torch.cpu, name):
            setattr(torch.cpu, name, lambda *_, value=value: value)


def plain_attention(query, key, value, **_):
    """FlexAttention has no backward on CPUs."""
    from torch.nn.attention.flex_attention import AuxOutput

    heads = query.shape[1] // key.shape[1]
    key, value = key.repeat_interleave(heads, 1), value.repeat_interleave(heads, 1)
    out = torch.nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
    return out, AuxOutput(lse=torch.zeros(query.shape[:3]))


def titan(**parallelism):
    use_cpus()
    from torchtitan.models.common.attention import FlexAttention
    from torchtitan.models.llama3.config_registry import llama3_debugmodel

    FlexAttention._compiled_flex_attn = staticmethod(plain_attention)
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        write_assets(folder)
        os.chdir(folder)
        train_in(folder, llama3_debugmodel(), parallelism)
        os.chdir("/")


def train_in(folder, config, parallelism):
    config.dump_folder = folder
    config.training.local_batch_size, config.training.seq_len, config.training.steps = 2, 64, STEPS
    config.training.disable_cuda_graphs = True
    config.validator.enable = False
    for name, value in parallelism.items():
        setattr(config.parallelism, name, value)
    trainer = config.build()
    for part in trainer.model_parts:  # gloo cannot scale while it adds up
        for module in part.modules():
            if hasattr(module, "set_force_sum_reduction_for_comms"):
                module.set_force_sum_reduction_for_comms(True)
    trainer.train()
    # torchtitan keeps no loss. Weights that are equal come from equal losses.
    say(trainer.step, 0, [parameter for part in trainer.model_parts for parameter in part.parameters()])
    trainer.close()
    if dist.is_initialized():
        dist.destroy_process_group()


@program(needs="torchtitan", launch="torchrun", other="compiling the masks of attention")
def torchtitan():
    titan()


@program(needs="torchtitan", launch="torchrun", ranks=2, other="compiling the masks of attention")
def torchtitan_tensor_parallel():
    titan(tensor_parallel_degree=2)
