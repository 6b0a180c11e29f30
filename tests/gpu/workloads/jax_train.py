"""A small network trained with JAX, its memory taken as needed and not three quarters of the device at once."""
import os

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
import jax
import jax.numpy as jnp


def init(key, sizes):
    keys = jax.random.split(key, len(sizes) - 1)
    return [(jax.random.normal(k, (a, b)) / a**0.5, jnp.zeros(b)) for k, a, b in zip(keys, sizes, sizes[1:])]


def forward(weights, x):
    for w, b in weights[:-1]:
        x = jax.nn.relu(x @ w + b)
    return x @ weights[-1][0] + weights[-1][1]


def loss_of(weights, x, y):
    return jnp.mean((forward(weights, x) - y) ** 2)


@jax.jit
def step(weights, x, y):
    loss, grads = jax.value_and_grad(loss_of)(weights, x, y)
    return [(w - 1e-3 * gw, b - 1e-3 * gb) for (w, b), (gw, gb) in zip(weights, grads)], loss


def main():
    weights = init(jax.random.PRNGKey(0), [1024, 4096, 4096, 256])
    kept = []
    for size in (256, 512, 1024, 2048):
        for i in range(8):
            x = jax.random.normal(jax.random.PRNGKey(i), (size, 1024))
            weights, loss = step(weights, x, x[:, :256])
        kept.append(forward(weights, x))
    print("jax", jax.__version__, [k.shape for k in kept], float(loss) > 0)


main()
