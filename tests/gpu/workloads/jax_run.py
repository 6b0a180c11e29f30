import jax
import jax.numpy as jnp

step = jax.jit(lambda x: jnp.tanh(x @ x.T).sum())
x = jnp.ones((2048, 2048))
for _ in range(20):
    x = x + step(x) * 1e-9
print("jax", jax.__version__, float(x[0, 0]))
