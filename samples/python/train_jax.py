# SPDX-License-Identifier: Apache-2.0
"""A training with JAX that marks its steps and phases for Paceline (docs/record.md).

    paceline record -o run -- python train_jax.py

Needs JAX and the package paceline.
"""
import jax
import jax.numpy as jnp
import paceline


@jax.jit
def gradients_of(weights, images, labels):
    return jax.value_and_grad(lambda weights: jnp.mean((jnp.tanh(images @ weights[0]) @ weights[1] - labels) ** 2))(weights)


@jax.jit
def updated(weights, gradients):
    return [weight - 0.01 * gradient for weight, gradient in zip(weights, gradients)]


def batch_of(step):
    images = jax.random.normal(jax.random.key(step), (64, 256))
    return images, jnp.sum(images, axis=1, keepdims=True)


weights = [0.05 * jax.random.normal(jax.random.key(1), shape) for shape in ((256, 512), (512, 1))]
for step in range(50):
    with paceline.step():
        with paceline.phase("preprocess"):
            images, labels = jax.block_until_ready(batch_of(step))
        with paceline.phase("forward and backward"):
            loss, gradients = jax.block_until_ready(gradients_of(weights, images, labels))
        with paceline.phase("optimizer"):
            weights = jax.block_until_ready(updated(weights, gradients))
print(f"loss {loss:.4f}")
