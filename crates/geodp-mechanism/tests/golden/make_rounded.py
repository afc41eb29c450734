"""Golden roundings for exact/refine.rs, by mpmath in 150 digits (an independent Box–Muller).

Each line: five words of U, five of the angle, the scale's bits, round(S·Z₁), round(S·Z₂). Besides
random words: uniforms deep in the tail and near 1, angles near the quadrants' edges, and second
words searched so that S·Z₁ lies within 2⁻⁶⁰ of a half-integer, where f64 cannot decide.
"""
import random
import struct

from mpmath import acos, cos, floor, log, mp, mpf, pi, sin, sqrt

mp.dps = 150
random.seed(20)


def number(words):
    return mpf(sum(w << (64 * (4 - i)) for i, w in enumerate(words)))


def draws(u, v, scale):
    radius = mpf(scale) * sqrt(-2 * log(number(u) / mpf(2) ** 320))
    quadrant = v[0] >> 62
    remainder = (number(v) / mpf(2) ** 318) % 1 - mpf(1) / 2
    turn = (quadrant + remainder) * pi / 2
    return radius * cos(turn), radius * sin(turn)


def nearest(x):
    return int(floor(abs(x) + mpf(1) / 2)) * (1 if x >= 0 else -1)


def words(value):
    return [int(value) >> (64 * (4 - i)) & (2**64 - 1) for i in range(5)]


def line(u, v, scale):
    a, b = (nearest(x) for x in draws(u, v, scale))
    bits = struct.unpack("<Q", struct.pack("<d", scale))[0]
    print(",".join([f"{w:x}" for w in u + v + [bits]] + [str(a), str(b)]))


def tie(scale, side):
    """A pair whose S·Z₁ is 2⁻⁶⁰ beside a half-integer, in the quadrant 0."""
    u = [random.getrandbits(64) for _ in range(5)]
    radius = mpf(scale) * sqrt(-2 * log(number(u) / mpf(2) ** 320))
    target = floor(radius * mpf("0.8")) + mpf(1) / 2 + side * mpf(2) ** -60
    remainder = acos(target / radius) * 2 / pi
    return u, words((remainder + mpf(1) / 2) * mpf(2) ** 318)


scales = [1.0, 1.3 * 2**26, 0.37 * 2**20, 2.0**40]
for scale in scales:
    for _ in range(6):
        line([random.getrandbits(64) for _ in range(5)], [random.getrandbits(64) for _ in range(5)], scale)
    for first in (0, 1, 2**44, 2**64 - 1, 2**63, 0xB504F333F9DE6484):
        for second in (0, 2**61, 2**62 - 1, 2**62, 3 << 62, 2**64 - 1):
            rest = [random.getrandbits(64) for _ in range(4)]
            line([first] + rest, [second] + rest[::-1], scale)
    line([0, 1] + [7] * 3, [2**60] + [5] * 4, scale)
    for side in (-1, 1):
        for _ in range(4):
            if scale > 1:
                line(*tie(scale, side), scale)
