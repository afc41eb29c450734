"""JAX peers: plain training, jax-privacy's clipped gradient, and the same by hand with vmap.

Each maker returns a function without arguments that takes one full compiled step and waits for it.
"""
import functools

import jax
import jax.numpy as jnp
import numpy as np

import network

LEARNING_RATE = 0.1
CLIP_NORM = 0.1
NOISE_MULTIPLIER = 1.0


def _apply(plan, nhwc, weights, x):
    for layer in plan.layers:
        x = _layer(layer, nhwc, weights, x)
    return x


def _layer(layer, nhwc, weights, x):
    spec, own = layer.spec, weights.get(layer.name, {})
    if layer.kind == "residual":
        aside = x
        for part in layer.shortcut:
            aside = _layer(part, nhwc, weights, aside)
        for part in layer.body:
            x = _layer(part, nhwc, weights, x)
        return x + aside
    if layer.kind == "linear":
        return x @ own["weight"].T + own.get("bias", 0.0)
    if layer.kind == "conv2d":
        layout = ("NHWC", "OIHW", "NHWC") if nhwc else ("NCHW", "OIHW", "NCHW")
        stride, padding = spec.get("stride", 1), spec.get("padding", 0)
        x = jax.lax.conv_general_dilated(x, own["weight"], (stride, stride), [(padding, padding)] * 2,
                                         dimension_numbers=layout)
        bias = own.get("bias", jnp.zeros(spec["outputs"]))
        return x + (bias if nhwc else bias[:, None, None])
    sides = (1, 2) if nhwc else (2, 3)
    if layer.kind == "max_pool":
        window, step = [1] * 4, [1] * 4
        for side in sides:
            window[side], step[side] = spec["kernel"], spec.get("stride") or spec["kernel"]
        return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, window, step, "VALID")
    if layer.kind == "global_avg_pool":
        return x.mean(axis=sides)
    if layer.kind == "flatten":
        return x.reshape(x.shape[0], -1)
    if layer.kind == "relu":
        return jax.nn.relu(x)
    if layer.kind == "tanh":
        return jnp.tanh(x)
    raise SystemExit(f"layer type {layer.kind!r} is not written for JAX")


def _losses(plan, nhwc, weights, x, y):
    logits = _apply(plan, nhwc, weights, x)
    if plan.loss == "sigmoid_cross_entropy":
        logit = logits[:, 0]
        return jax.nn.softplus(logit) - y * logit
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), y[:, None], axis=1)[:, 0]


def _start(plan, rng):
    weights = {}
    for layer in plan.leaves():
        shapes = network.parameter_shapes(layer)
        if shapes:
            bound = 1 / np.sqrt(max(1, np.prod(shapes["weight"][1:])))
            weights[layer.name] = {
                name: jnp.asarray(rng.uniform(-bound, bound, shape), jnp.float32) for name, shape in shapes.items()}
    return weights


def make(peer, plan, batch, channels_last, microbatch):
    """The step of a peer on a fixed batch in memory."""
    rng = np.random.default_rng(1)
    nhwc = channels_last and len(plan.inputs) == 3
    x = rng.standard_normal((batch, *plan.inputs), dtype=np.float32)
    x = jnp.asarray(x.transpose(0, 2, 3, 1) if nhwc else x)
    y = jnp.asarray(rng.integers(0, plan.classes, batch))
    mean_loss = lambda weights, x, y: _losses(plan, nhwc, weights, x, y).mean()
    microbatch = microbatch if microbatch and microbatch < batch else None

    if peer == "jax":
        gradient = jax.grad(mean_loss)
    elif peer == "jax-privacy":
        import jax_privacy

        clipped = jax_privacy.clipped_grad(mean_loss, l2_clip_norm=CLIP_NORM, batch_argnums=(1, 2),
                                           normalize_by=batch, microbatch_size=microbatch)
        gradient = lambda weights, x, y: clipped(weights, x, y)
    else:
        gradient = functools.partial(_vmap_clipped, mean_loss, batch, microbatch)

    private = peer != "jax"

    @functools.partial(jax.jit, donate_argnums=0)
    def update(weights, key, x, y):
        direction = gradient(weights, x, y)
        if private:
            leaves, tree = jax.tree.flatten(direction)
            keys = jax.random.split(key, len(leaves))
            scale = NOISE_MULTIPLIER * CLIP_NORM / batch
            leaves = [g + scale * jax.random.normal(k, g.shape) for g, k in zip(leaves, keys)]
            direction = jax.tree.unflatten(tree, leaves)
        return jax.tree.map(lambda w, g: w - LEARNING_RATE * g, weights, direction)

    state = {"weights": _start(plan, rng), "key": jax.random.key(1)}

    def step():
        state["key"], key = jax.random.split(state["key"])
        state["weights"] = jax.block_until_ready(update(state["weights"], key, x, y))

    return step


def _vmap_clipped(mean_loss, batch, microbatch, weights, x, y):
    one = jax.grad(lambda weights, x, y: mean_loss(weights, x[None], y[None]))

    def clipped_sum(x, y):
        gradients = jax.vmap(one, in_axes=(None, 0, 0))(weights, x, y)
        squares = sum(jnp.square(g).reshape(g.shape[0], -1).sum(1) for g in jax.tree.leaves(gradients))
        factor = jnp.minimum(1.0, CLIP_NORM / jnp.maximum(jnp.sqrt(squares), 1e-12))
        return jax.tree.map(lambda g: jnp.tensordot(factor, g, axes=1), gradients)

    if microbatch:
        parts = lambda a: a.reshape(batch // microbatch, microbatch, *a.shape[1:])
        add = lambda total, part: (jax.tree.map(jnp.add, total, clipped_sum(*part)), None)
        total, _ = jax.lax.scan(add, jax.tree.map(jnp.zeros_like, weights), (parts(x), parts(y)))
    else:
        total = clipped_sum(x, y)
    return jax.tree.map(lambda g: g / batch, total)
