"""Seconds that kymatio needs for the scattering features of MNIST, for comparison with
`cargo bench -p geodp-data --bench scattering` in the same run on the same machine.

Usage: pip install kymatio==0.3.0 numpy scipy [torch]; python3 kymatio_mnist.py [numpy|torch] [count]
The images are read from crates/geodp-mnist/assets.
"""
import gzip
import pathlib
import sys
import time

import numpy as np
import scipy.special

# kymatio imports a name that SciPy 1.17 no longer has; the 2-D transform does not use it.
if not hasattr(scipy.special, "sph_harm"):
    scipy.special.sph_harm = None

backend = sys.argv[1] if len(sys.argv) > 1 else "numpy"
count = int(sys.argv[2]) if len(sys.argv) > 2 else 60_000
asset = pathlib.Path(__file__).parents[2] / "crates/geodp-mnist/assets/train-images-idx3-ubyte.gz"
pixels = np.frombuffer(gzip.decompress(asset.read_bytes())[16:], np.uint8)
images = ((pixels.reshape(-1, 28, 28)[:count] / 255.0 - 0.1307) / 0.3081).astype(np.float32)

if backend == "torch":
    import torch
    from kymatio.torch import Scattering2D
    torch.set_num_threads(2)
    transform, images = Scattering2D(2, (28, 28), L=8), torch.from_numpy(images)
else:
    from kymatio.numpy import Scattering2D
    transform = Scattering2D(2, (28, 28), L=8)

transform(images[:100])
start = time.perf_counter()
for at in range(0, count, 500):
    transform(images[at:at + 500])
seconds = time.perf_counter() - start
print(f"kymatio.{backend}: {seconds:.2f} s for {count} images, {seconds * 60_000 / count:.2f} s for 60,000")
