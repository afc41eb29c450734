"""PyTorch's squared and Huber losses with their gradients, for tests/regression.rs:
python make_regression.py > regression.json (torch 2.x, float64).

A linear model and one with a hidden layer on 12 records; weights, inputs and targets are single-precision
numbers and are kept with the results. torch's mse_loss is r², ours r²/2; huber_loss is ours with delta = 0.1.
"""

import json

import torch
from torch import nn

torch.set_default_dtype(torch.float64)
torch.manual_seed(4)


def single(x):
    return x.float().double()


inputs, targets = single(torch.randn(12, 3)), single(torch.rand(12))
LOSSES = {
    "squared": lambda z, t: nn.functional.mse_loss(z, t) / 2,
    "huber": lambda z, t: nn.functional.huber_loss(z, t, delta=0.1),
}
cases = []
for hidden in ([], [4]):
    sizes = [3, *hidden, 1]
    layers = [nn.Linear(a, b) for a, b in zip(sizes, sizes[1:])]
    parameters = [p for layer in layers for p in (layer.weight, layer.bias)]
    with torch.no_grad():
        # Small, so that some residuals lie within 0.1 and others beyond.
        for p in parameters:
            p.copy_(single(0.5 * torch.randn(p.shape)))
    for name, loss in LOSSES.items():
        losses, gradients = [], []
        for x, t in zip(inputs, targets):
            for layer in layers[:-1]:
                x = torch.relu(layer(x))
            value = loss(layers[-1](x).squeeze(), t)
            gradient = torch.autograd.grad(value, parameters)
            losses.append(round(value.item(), 10))
            gradients.append([round(g, 10) for part in gradient for g in part.flatten().tolist()])
        weights = [w for p in parameters for w in p.detach().flatten().tolist()]
        cases.append({"loss": name, "hidden": hidden, "weights": weights, "losses": losses, "gradients": gradients})
print(json.dumps({"inputs": inputs.tolist(), "targets": targets.tolist(), "cases": cases}))
