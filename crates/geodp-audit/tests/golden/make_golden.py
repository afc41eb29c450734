"""Golden values of the one-run statistic and of Clopper-Pearson limits, with 40 digits.

Needs mpmath. The numbers stand in src/one_run.rs and src/binomial.rs.
"""

from mpmath import betainc, binomial, exp, mp, mpf

mp.dps = 40


def p_value(m, r, v, delta, epsilon):
    """Steinke, Nasr, Jagielski 2023, Theorem 5.2."""
    q = 1 / (1 + exp(-epsilon))
    pmf = [binomial(r, k) * q**k * (1 - q) ** (r - k) for k in range(r + 1)]
    tail = sum(pmf[v:])
    below, largest = mpf(0), mpf(0)
    for i in range(1, v + 1):
        below += pmf[v - i]
        largest = max(largest, below / i)
    return min(mpf(1), tail + 2 * m * mpf(delta) * largest)


def root(below, low, high, rounds):
    """Where `below` stops holding."""
    low, high = mpf(low), mpf(high)
    for _ in range(rounds):
        middle = (low + high) / 2
        low, high = (middle, high) if below(middle) else (low, middle)
    return low


for case in [(1000, 100, 100, 0), (1000, 100, 100, "1e-5"), (1000, 100, 95, "1e-5"),
             (1000, 1000, 600, "1e-5"), (5000, 1000, 800, "1e-5")]:
    print(case, mp.nstr(root(lambda e: p_value(*case, e) < mpf("0.05"), 0, 20, 40), 9))

for n, k, alpha in [(100, 37, "0.025"), (1_000_000, 1200, "0.025")]:
    tail = lambda p: betainc(k, n - k + 1, 0, p, regularized=True) < mpf(alpha)
    print("lower limit", n, k, alpha, mp.nstr(root(tail, 0, 2 * k / n, 80), 16))
print("upper limit 100 37 0.025",
      mp.nstr(1 - root(lambda p: betainc(63, 38, 0, p, regularized=True) < mpf("0.025"), 0, 1, 80), 16))
