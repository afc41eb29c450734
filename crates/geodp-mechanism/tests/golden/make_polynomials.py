"""Polynomials of kernels/rounded.rs: interpolation at Chebyshev nodes, by mpmath in 60 digits.

For each function prints log2 of the largest error with coefficients rounded to f64, and the
coefficients, lowest power first. z is r² in quarter turns (at most 1/4) or s² (at most 0.0295).
"""
from mpmath import atanh, cos, log, lu_solve, matrix, mp, mpf, nstr, pi, sin, sqrt

mp.dps = 60


def interpolate(f, end, degree):
    nodes = [end / 2 + end / 2 * cos(pi * (2 * k + 1) / (2 * (degree + 1))) for k in range(degree + 1)]
    powers = matrix([[x**j for j in range(degree + 1)] for x in nodes])
    return [float(c) for c in lu_solve(powers, matrix([f(x) for x in nodes]))]


def worst(f, end, coefficients):
    points = [end * mpf(i) / 2000 for i in range(1, 2001)]
    return max(abs(sum(mpf(c) * x**j for j, c in enumerate(coefficients)) - f(x)) for x in points)


functions = {
    "sin(πr/2)/r": (lambda z: sin(pi / 2 * sqrt(z)) / sqrt(z), mpf(1) / 4),
    "cos(πr/2)": (lambda z: cos(pi / 2 * sqrt(z)), mpf(1) / 4),
    "2·atanh(s)/s": (lambda z: 2 * atanh(sqrt(z)) / sqrt(z), ((sqrt(2) - 1) / (sqrt(2) + 1)) ** 2),
}
for name, (f, end) in functions.items():
    coefficients = interpolate(f, end, 6)
    print(name, nstr(log(worst(f, end, coefficients), 2), 4), coefficients)
