"""Scattering coefficients of tests/golden.rs by kymatio.numpy 0.3, order 2, J = 2, L = 8.

Inputs are x[p] = ((a*p + b) mod 256)/255 with (a, b) by image and channel, so that the test can make
them itself. Kept: every STEP-th coefficient of the raw transform, and of its GroupNorm (27 groups, no
affine map, eps 1e-5, as torch.nn.GroupNorm defines it), which is written out here in double precision.

Usage: pip install kymatio==0.3.0 numpy scipy; python3 make_golden.py > golden.json
"""
import json

import numpy as np
import scipy.special

# kymatio imports a name that SciPy 1.17 no longer has; the 2-D transform does not use it.
if not hasattr(scipy.special, "sph_harm"):
    scipy.special.sph_harm = None

from kymatio.numpy import Scattering2D  # noqa: E402

STEP = 37
SHAPES = [(1, 28, 28), (3, 28, 28), (1, 32, 32), (3, 32, 32), (1, 30, 21), (2, 5, 50)]


def image(channels, height, width, number):
    place = np.arange(height * width, dtype=np.int64)
    planes = [(31 + 6 * number + 10 * c) * place * place // 7 + 17 * c for c in range(channels)]
    return np.stack(planes).reshape(channels, height, width) % 256 / 255.0


def group_norm(features, groups):
    flat = features.reshape(groups, -1)
    mean, variance = flat.mean(1, keepdims=True), flat.var(1, keepdims=True)
    return ((flat - mean) / np.sqrt(variance + 1e-5)).reshape(-1)


cases = []
for shape in SHAPES:
    transform = Scattering2D(2, shape[1:], L=8)
    for number in range(2):
        features = transform(image(*shape, number))
        assert features.shape == (shape[0], 81, shape[1] // 4, shape[2] // 4)
        raw = features.reshape(-1)
        cases.append({
            "shape": shape,
            "number": number,
            "raw": [float(f"{v:.9g}") for v in raw[::STEP]],
            "largest": float(np.abs(raw).max()),
            "normalised": [float(f"{v:.9g}") for v in group_norm(features, 27)[::STEP]],
        })
print(json.dumps({"step": STEP, "cases": cases}))
