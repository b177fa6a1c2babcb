# SPDX-License-Identifier: Apache-2.0
# usage: other_frameworks.py jax|cupy: 30 steps on a GPU without PyTorch.
import sys


def jax():
    import jax
    import jax.numpy as jnp

    def loss_of(w, x):
        return jnp.mean((jnp.tanh(x @ w)) ** 2)

    step = jax.jit(lambda w, x: w - 0.1 * jax.grad(loss_of)(w, x))
    w, x = jnp.ones((512, 512)) * 0.01, jnp.ones((256, 512))
    for _ in range(30):
        w = step(w, x)
    print(f"sum {float(w.sum()):.1f}")


def cupy():
    import cupy
    a = cupy.ones((1024, 1024), cupy.float32)
    for _ in range(30):
        a = cupy.tanh(a @ a) * 0.5
    print(f"sum {float(a.sum()):.1f}")


globals()[sys.argv[1]]()
