"""Networks from the TOML description that geodp reads (models/*.toml): shapes, names, and FLOP.

One description for all sides, so that peers and we run the same architecture by construction.
Nothing here needs torch or jax; torch_peers.py and jax_peers.py turn the plan into theirs.
"""
import dataclasses
import math
import pathlib
import tomllib


@dataclasses.dataclass
class Layer:
    """A layer with everything resolved: its full name, its input and its output shape."""

    kind: str
    name: str
    spec: dict
    inputs: tuple
    outputs: tuple
    body: list = dataclasses.field(default_factory=list)
    shortcut: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Plan:
    """A whole network."""

    inputs: tuple
    loss: str
    layers: list

    @property
    def outputs(self):
        return self.layers[-1].outputs[0]

    @property
    def classes(self):
        return 2 if self.loss == "sigmoid_cross_entropy" else self.outputs

    def leaves(self):
        return list(_leaves(self.layers))

    def parameters(self):
        return sum(math.prod(shape) for layer in self.leaves() for shape in parameter_shapes(layer).values())

    def step_flop(self):
        """FLOP of one sample's forward and backward: 2 a multiply-add, three times over, less the
        gradient with respect to the network's own input, which nobody needs."""
        total = 0
        for position, layer in enumerate(self.leaves()):
            total += _forward_flop(layer) * (2 if position == 0 else 3)
        return total


def load(path):
    text = pathlib.Path(path).read_text(encoding="utf-8")
    return plan(tomllib.loads(text))


def plan(description):
    inputs = tuple(description["input"])
    return Plan(inputs, description["loss"], _resolve(description["layers"], inputs, ""))


def parameter_shapes(layer):
    """Shapes of a layer's parameters in PyTorch's layout, by their last name."""
    spec = layer.spec
    if layer.kind == "linear":
        shapes = {"weight": (spec["outputs"], layer.inputs[0])}
    elif layer.kind == "conv2d":
        shapes = {"weight": (spec["outputs"], layer.inputs[0], spec["kernel"], spec["kernel"])}
    elif layer.kind == "group_norm":
        return {"weight": (layer.inputs[0],), "bias": (layer.inputs[0],)}
    else:
        return {}
    if spec.get("bias", True):
        shapes["bias"] = (spec["outputs"],)
    return shapes


def _leaves(layers):
    for layer in layers:
        if layer.kind == "residual":
            yield from _leaves(layer.body)
            yield from _leaves(layer.shortcut)
        else:
            yield layer


def _resolve(specs, shape, prefix):
    layers = []
    for position, spec in enumerate(specs):
        name = prefix + spec.get("name", str(position))
        kind = spec["type"]
        layer = Layer(kind, name, spec, shape, shape)
        if kind == "residual":
            layer.body = _resolve(spec["body"], shape, name + ".")
            layer.shortcut = _resolve(spec.get("shortcut", []), shape, name + ".")
            layer.outputs = layer.body[-1].outputs
        else:
            layer.outputs = _output_shape(kind, spec, shape)
        layers.append(layer)
        shape = layer.outputs
    return layers


def _output_shape(kind, spec, shape):
    if kind == "linear":
        return (spec["outputs"],)
    if kind == "conv2d":
        side = lambda size: (size + 2 * spec.get("padding", 0) - spec["kernel"]) // spec.get("stride", 1) + 1
        return (spec["outputs"], side(shape[1]), side(shape[2]))
    if kind in ("max_pool", "avg_pool"):
        side = lambda size: (size - spec["kernel"]) // (spec.get("stride") or spec["kernel"]) + 1
        return (shape[0], side(shape[1]), side(shape[2]))
    if kind == "global_avg_pool":
        return (shape[0],)
    if kind == "flatten":
        return (math.prod(shape),)
    if kind in ("relu", "tanh", "group_norm"):
        return shape
    raise SystemExit(f"layer type {kind!r} is not known to the peers")


def _forward_flop(layer):
    shapes = parameter_shapes(layer)
    if layer.kind not in ("linear", "conv2d"):
        return 0
    places = math.prod(layer.outputs[1:])
    return 2 * math.prod(shapes["weight"]) * places
