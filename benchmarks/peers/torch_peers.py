"""PyTorch peers: plain training, Opacus by hooks, Opacus ghost clipping, torch.func vmap.

Each maker returns a function without arguments that takes one full step: forward, backward,
clipping, noise and SGD update (the plain one without clipping and noise).
"""
from collections import OrderedDict

import torch
from torch import nn
from torch.nn import functional

LEARNING_RATE = 0.1
CLIP_NORM = 0.1
NOISE_MULTIPLIER = 1.0


class Residual(nn.Module):
    """body(x) + shortcut(x), with the layers of both as its own children, as geodp names them."""

    def __init__(self, body, shortcut):
        super().__init__()
        self.body_names, self.shortcut_names = [name for name, _ in body], [name for name, _ in shortcut]
        for name, module in body + shortcut:
            self.add_module(name, module)

    def forward(self, x):
        aside = x
        for name in self.shortcut_names:
            aside = getattr(self, name)(aside)
        for name in self.body_names:
            x = getattr(self, name)(x)
        return x + aside


class GlobalAvgPool(nn.Module):
    def forward(self, x):
        return x.mean(dim=(2, 3))


class SampleLoss(nn.Module):
    """The loss of the plan, with the `reduction` attribute that Opacus switches."""

    def __init__(self, plan, reduction="mean"):
        super().__init__()
        self.sigmoid, self.reduction = plan.loss == "sigmoid_cross_entropy", reduction

    def forward(self, logits, labels):
        if self.sigmoid:
            losses = functional.binary_cross_entropy_with_logits(
                logits.squeeze(-1), labels.to(logits.dtype), reduction="none")
        else:
            losses = functional.cross_entropy(logits, labels, reduction="none")
        return losses if self.reduction == "none" else losses.mean()


def module(plan):
    """The network as an nn.Module whose state_dict has geodp's names."""
    return nn.Sequential(_ordered(plan.layers))


def _ordered(layers):
    return OrderedDict((layer.name.rsplit(".", 1)[-1], _layer(layer)) for layer in layers)


def _layer(layer):
    spec = layer.spec
    if layer.kind == "residual":
        return Residual(*_apart(list(_ordered(layer.body).items()), list(_ordered(layer.shortcut).items())))
    if layer.kind == "linear":
        return nn.Linear(layer.inputs[0], spec["outputs"], bias=spec.get("bias", True))
    if layer.kind == "conv2d":
        return nn.Conv2d(layer.inputs[0], spec["outputs"], spec["kernel"], spec.get("stride", 1),
                         spec.get("padding", 0), bias=spec.get("bias", True))
    if layer.kind == "group_norm":
        return nn.GroupNorm(spec["groups"], layer.inputs[0])
    if layer.kind == "max_pool":
        return nn.MaxPool2d(spec["kernel"], spec.get("stride"))
    if layer.kind == "avg_pool":
        return nn.AvgPool2d(spec["kernel"], spec.get("stride"))
    simple = {"global_avg_pool": GlobalAvgPool, "relu": nn.ReLU, "tanh": nn.Tanh, "flatten": nn.Flatten}
    return simple[layer.kind]()


def _apart(body, shortcut):
    """Both lists with no name in common: layers without parameters, which nobody names, give way."""
    rename = lambda side, pairs: [(name if list(part.parameters()) else f"{side}_{name}", part) for name, part in pairs]
    return rename("body", body), rename("shortcut", shortcut)


def make(peer, plan, batch, channels_last, microbatch):
    """The step of a peer on a fixed batch in memory."""
    torch.manual_seed(1)
    net, criterion = module(plan), SampleLoss(plan)
    x, y = torch.randn(batch, *plan.inputs), torch.randint(plan.classes, (batch,))
    if channels_last and x.dim() == 4:
        net, x = net.to(memory_format=torch.channels_last), x.contiguous(memory_format=torch.channels_last)
    size = min(microbatch or batch, batch)
    parts = list(zip(x.split(size), y.split(size)))
    makers = {"torch": _plain, "opacus-hooks": _hooks, "opacus-ghost": _ghost, "torch-vmap": _vmap}
    return makers[peer](net, criterion, parts, batch)


def _plain(net, criterion, parts, batch):
    optimizer = torch.optim.SGD(net.parameters(), lr=LEARNING_RATE)
    criterion.reduction = "none"

    def step():
        optimizer.zero_grad()
        for x, y in parts:
            (criterion(net(x), y).sum() / batch).backward()
        optimizer.step()

    return step


def _hooks(net, criterion, parts, batch):
    from opacus.grad_sample import GradSampleModule
    from opacus.optimizers import DPOptimizer

    net = GradSampleModule(net)
    optimizer = DPOptimizer(torch.optim.SGD(net.parameters(), lr=LEARNING_RATE), noise_multiplier=NOISE_MULTIPLIER,
                            max_grad_norm=CLIP_NORM, expected_batch_size=batch)

    def step():
        for number, (x, y) in enumerate(parts):
            optimizer.zero_grad()
            criterion(net(x), y).backward()
            optimizer.signal_skip_step(do_skip=number + 1 < len(parts))
            optimizer.step()
        optimizer.zero_grad()

    return step


def _ghost(net, criterion, parts, batch):
    from opacus.grad_sample.grad_sample_module_fast_gradient_clipping import GradSampleModuleFastGradientClipping
    from opacus.optimizers.optimizer_fast_gradient_clipping import DPOptimizerFastGradientClipping
    from opacus.utils.fast_gradient_clipping_utils import DPLossFastGradientClipping

    net = GradSampleModuleFastGradientClipping(net, max_grad_norm=CLIP_NORM, use_ghost_clipping=True)
    optimizer = DPOptimizerFastGradientClipping(
        torch.optim.SGD(net.parameters(), lr=LEARNING_RATE), noise_multiplier=NOISE_MULTIPLIER,
        max_grad_norm=CLIP_NORM, expected_batch_size=batch)
    criterion = DPLossFastGradientClipping(net, optimizer, criterion)

    def step():
        for number, (x, y) in enumerate(parts):
            optimizer.zero_grad()
            criterion(net(x), y).backward()
            optimizer.signal_skip_step(do_skip=number + 1 < len(parts))
            optimizer.step()
        optimizer.zero_grad()

    return step


def _vmap(net, criterion, parts, batch):
    weights = {name: value.detach() for name, value in net.named_parameters()}

    def loss(weights, x, y):
        return criterion(torch.func.functional_call(net, weights, (x.unsqueeze(0),)), y.unsqueeze(0))

    per_sample = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0, 0))

    def clipped_sum(x, y):
        gradients = per_sample(weights, x, y)
        norms = torch.stack([g.flatten(1).norm(dim=1) for g in gradients.values()]).norm(dim=0)
        factor = (CLIP_NORM / norms.clamp(min=1e-12)).clamp(max=1.0)
        return {name: torch.tensordot(factor, g, dims=1) for name, g in gradients.items()}

    def step():
        with torch.no_grad():
            total = clipped_sum(*parts[0])
            for x, y in parts[1:]:
                for name, part in clipped_sum(x, y).items():
                    total[name] += part
            for name, value in weights.items():
                noise = torch.randn_like(value) * (NOISE_MULTIPLIER * CLIP_NORM)
                value -= (LEARNING_RATE / batch) * (total[name] + noise)

    return step
