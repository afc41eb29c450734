"""Golden values from PyTorch: python make_golden.py > golden.json (torch 2.x, float64).

Weights and inputs come from a hash that tests/golden.rs computes as well, so only results are kept:
probabilities, losses, per-sample gradient norms, and of the clipped sum each parameter's norm, its
product with another hashed vector, and its first values. Gradients are those of batches of one; the
same stands under "unit_…" for units of several rows, whose mean gradient is clipped.
"""

import json

import torch
from torch import nn

torch.set_default_dtype(torch.float64)
CLIP, SAMPLES = 0.5, 11
UNITS = [range(0, 3), range(3, 5), range(5, 9), range(9, 11)]


def hashed(start, count):
    """Values in [-1, 1), rounded to single precision."""
    x = (torch.arange(start, start + count, dtype=torch.int64) * 2654435761) & 0xFFFFFFFF
    x ^= x >> 15
    x = (x * 2246822519) & 0xFFFFFFFF
    x ^= x >> 13
    return x.double() / 2**31 - 1


def single(x):
    return x.float().double()


class Logistic(nn.Module):
    def __init__(self, features, outputs):
        super().__init__()
        self.linear = nn.Linear(features, outputs)

    def forward(self, x):
        return self.linear(x)


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2, self.fc3 = nn.Linear(30, 17), nn.Linear(17, 12), nn.Linear(12, 5)

    def forward(self, x):
        return self.fc3(torch.relu(self.fc2(torch.relu(self.fc1(x)))))


class Cnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 10, 5), nn.Conv2d(10, 20, 5)
        self.fc1, self.fc2 = nn.Linear(320, 50), nn.Linear(50, 10)

    def forward(self, x):
        x = torch.relu(nn.functional.max_pool2d(self.conv1(x.view(-1, 1, 28, 28)), 2))
        x = torch.relu(nn.functional.max_pool2d(self.conv2(x), 2))
        return self.fc2(torch.relu(self.fc1(x.flatten(1))))


class TanhCnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 16, 8, 2, 2), nn.Conv2d(16, 32, 4, 2)
        self.fc1, self.fc2 = nn.Linear(512, 32), nn.Linear(32, 10)

    def forward(self, x):
        x = nn.functional.max_pool2d(torch.tanh(self.conv1(x.view(-1, 1, 28, 28))), 2, 1)
        x = nn.functional.max_pool2d(torch.tanh(self.conv2(x)), 2, 1)
        return self.fc2(torch.tanh(self.fc1(x.flatten(1))))


class Block(nn.Module):
    def __init__(self, channels, width, stride, groups):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, width, 3, stride, 1)
        self.norm1 = nn.GroupNorm(groups, width) if groups else nn.Identity()
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1)
        self.norm2 = nn.GroupNorm(groups, width) if groups else nn.Identity()
        if stride != 1 or width != channels:
            self.shortcut = nn.Conv2d(channels, width, 1, stride)
        else:
            self.shortcut = nn.Identity()

    def forward(self, x):
        body = self.norm2(self.conv2(torch.relu(self.norm1(self.conv1(x)))))
        return body + self.shortcut(x)


class Resnet(nn.Module):
    def __init__(self, groups):
        super().__init__()
        self.stem = nn.Conv2d(3, 6, 3, 1, 1)
        self.stem_norm = nn.GroupNorm(groups, 6) if groups else nn.Identity()
        self.block1 = Block(6, 6, 1, groups)
        self.block2 = Block(6, 8, 2, groups)
        self.block3 = Block(8, 12, 2, groups)
        self.fc = nn.Linear(12, 10)

    def forward(self, x):
        x = self.stem_norm(self.stem(x.view(-1, 3, 16, 16)))
        x = self.block3(self.block2(self.block1(x)))
        return self.fc(x.mean((2, 3)))


def clipped_into(sums, model):
    """Adds the clipped gradient to `sums` and returns its norm."""
    norm = sum((p.grad**2).sum() for p in model.parameters()).sqrt().item()
    for total, p in zip(sums, model.parameters()):
        total += p.grad * min(1.0, CLIP / norm)
    return norm


def mean_loss(z, labels):
    if z.shape[1] == 1:
        return nn.functional.binary_cross_entropy_with_logits(z[:, 0], labels.double())
    return nn.functional.cross_entropy(z, labels)


def describe(parameters, prefix, sums):
    for parameter, total in zip(parameters, sums):
        flat = total.flatten()
        parameter[prefix + "norm"] = flat.norm().item()
        parameter[prefix + "product"] = (flat @ hashed(77, flat.numel())).item()
        parameter[prefix + "first"] = flat[:3].tolist()


def golden(name, model, features, classes):
    parameters, offset = [], 0
    fan_in = 1
    with torch.no_grad():
        for key, value in model.named_parameters():
            if value.dim() > 1:
                fan_in = value[0].numel()
            is_norm = "norm" in key
            base = 1.0 if is_norm and key.endswith("weight") else 0.0
            scale = 0.25 if is_norm else 2.0 / fan_in**0.5
            flat = single(base + scale * hashed(offset, value.numel()))
            value.copy_(flat.view_as(value))
            shape = list(value.shape)
            parameters.append(dict(name=key, shape=shape, base=base, scale=scale))
            offset += value.numel()
    inputs = single(1.5 * hashed(1_000_003, SAMPLES * features)).view(SAMPLES, features)
    labels = torch.arange(SAMPLES) * 7 % classes
    probabilities, losses, norms = [], [], []
    sums = [torch.zeros_like(p) for p in model.parameters()]
    for x, label in zip(inputs, labels):
        model.zero_grad()
        z = model(x[None])
        loss = mean_loss(z, label[None])
        if z.shape[1] == 1:
            p = torch.sigmoid(z[0])
            probabilities.append([1 - p.item(), p.item()])
        else:
            probabilities.append(torch.softmax(z[0], 0).tolist())
        loss.backward()
        losses.append(loss.item())
        norms.append(clipped_into(sums, model))
    describe(parameters, "", sums)
    unit_norms, unit_losses = [], []
    sums = [torch.zeros_like(p) for p in model.parameters()]
    for rows in UNITS:
        model.zero_grad()
        loss = mean_loss(model(inputs[list(rows)]), labels[list(rows)])
        loss.backward()
        unit_losses.append(loss.item())
        unit_norms.append(clipped_into(sums, model))
    describe(parameters, "unit_", sums)
    return dict(
        model=name,
        parameters=parameters,
        probabilities=probabilities,
        losses=losses,
        norms=norms,
        unit_losses=unit_losses,
        unit_norms=unit_norms,
    )


print(
    json.dumps(
        [
            golden("logistic", Logistic(25, 1), 25, 2),
            golden("softmax", Logistic(25, 7), 25, 7),
            golden("mlp", Mlp(), 30, 5),
            golden("cnn", Cnn(), 784, 10),
            golden("tanh_cnn", TanhCnn(), 784, 10),
            golden("resnet", Resnet(None), 768, 10),
            golden("resnet_norm", Resnet(2), 768, 10),
        ],
        separators=(",", ":"),
    )
)
