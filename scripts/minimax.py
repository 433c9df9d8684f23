#!/usr/bin/env python3
"""Derive the polynomial coefficients of kernels/numerics/fmath_constants.h.

Each function is fitted by Remez' exchange in 60-digit decimal arithmetic: the polynomial
of least maximal weighted error on the interval. The coefficients are then rounded to the
format in which the kernels use them, and the error of the rounded polynomial is printed.
Nothing outside Python's standard library is needed.  usage: python3 scripts/minimax.py
"""
import struct
from decimal import Decimal, getcontext, localcontext

getcontext().prec = 60
ONE = Decimal(1)
LN2 = Decimal(2).ln()


def arctan_inverse(n):
    """arctan(1/n) by its series."""
    total, term, k = Decimal(0), ONE / n, 0
    while abs(term) > Decimal(10) ** -58:
        total += term / (2 * k + 1) * (-1) ** k
        term, k = term / (n * n), k + 1
    return total


PI = 4 * (4 * arctan_inverse(5) - arctan_inverse(239))


def series(first, ratio):
    """Sum of terms t_0 = first, t_(k+1) = t_k * ratio(k)."""
    total, term, k = Decimal(0), first, 0
    while abs(term) > Decimal(10) ** -55:
        total += term
        term, k = term * ratio(k), k + 1
    return total


def exp_tail(r):
    """(e^r - 1 - r) / r^2"""
    return series(ONE / 2, lambda k: r / (k + 3))


def atanh_tail(t):
    """(2 atanh(s) - 2 s) / s^3 at t = s^2"""
    total, power, k = Decimal(0), ONE, 0
    while power > Decimal(10) ** -55 or k == 0:
        total += 2 * power / (2 * k + 3)
        power, k = power * t, k + 1
    return total


def sin_tail(t):
    """(sin(x) - x) / x^3 at t = x^2"""
    return series(-ONE / 6, lambda k: -t / ((2 * k + 4) * (2 * k + 5)))


def cos_tail(t):
    """(cos(x) - 1 + x^2 / 2) / x^4 at t = x^2"""
    return series(ONE / 24, lambda k: -t / ((2 * k + 5) * (2 * k + 6)))


def normal_tail(t):
    """e^(a^2 / 2) times the normal distribution below -a, at t = (a - 5) / (a + 5)"""
    with localcontext() as context:
        context.prec = 130  # the difference cancels
        a = 5 * (1 + t) / (1 - t)
        return (a * a / 2).exp() / 2 - series(a, lambda k: a * a / (2 * k + 3)) / (2 * PI).sqrt()


def solve(matrix, right):
    """Gaussian elimination with row pivoting."""
    n = len(right)
    rows = [list(matrix[i]) + [right[i]] for i in range(n)]
    for i in range(n):
        pivot = max(range(i, n), key=lambda j: abs(rows[j][i]))
        rows[i], rows[pivot] = rows[pivot], rows[i]
        for j in range(i + 1, n):
            factor = rows[j][i] / rows[i][i]
            rows[j] = [a - factor * b for a, b in zip(rows[j], rows[i])]
    out = [Decimal(0)] * n
    for i in reversed(range(n)):
        known = sum((rows[i][j] * out[j] for j in range(i + 1, n)), Decimal(0))
        out[i] = (rows[i][n] - known) / rows[i][i]
    return out


def horner(coefficients, x):
    total = Decimal(0)
    for c in reversed(coefficients):
        total = total * x + c
    return total


def peaks(points, errors):
    """The point of largest |error| in each run of one sign."""
    out = []
    for x, e in zip(points, errors):
        if out and (out[-1][1] < 0) == (e < 0):
            if abs(e) > abs(out[-1][1]):
                out[-1] = (x, e)
        elif e != 0:
            out.append((x, e))
    return out


def remez(f, weight, low, high, degree, n_grid=3000):
    """Coefficients c_0.. of the polynomial that minimises max |weight * (f - p)|."""
    # Chebyshev spacing: dense near the ends, where the error turns fastest.
    centre, half = (low + high) / 2, (high - low) / 2
    angles = [PI * Decimal(i) / (n_grid - 1) for i in range(n_grid)]
    grid = [centre - half * cos_of(a) for a in angles]
    values = [(x, f(x), weight(x)) for x in grid]
    step = (n_grid - 1) / (degree + 1)
    chosen = [grid[min(n_grid - 2, int(i * step) + 1)] for i in range(degree + 2)]
    for _ in range(30):
        matrix = [[x ** k for k in range(degree + 1)] + [(-1) ** i / weight(x)]
                  for i, x in enumerate(chosen)]
        solution = solve(matrix, [f(x) for x in chosen])
        coefficients, level = solution[:-1], abs(solution[-1])
        errors = [w * (y - horner(coefficients, x)) for x, y, w in values]
        found = peaks(grid, errors)
        while len(found) > degree + 2:
            found.pop(0 if abs(found[0][1]) < abs(found[-1][1]) else -1)
        if len(found) < degree + 2:
            raise RuntimeError("the error has too few alternations")
        chosen = [x for x, _ in found]
        if max(abs(e) for _, e in found) < level * Decimal("1.0001"):
            return coefficients, values
    raise RuntimeError("no convergence")


def cos_of(a):
    """cos on [0, pi] for the grid."""
    return series(ONE, lambda k: -a * a / ((2 * k + 1) * (2 * k + 2)))


def to_double(x):
    return float(x)


def to_float(x):
    return struct.unpack("f", struct.pack("f", float(x)))[0]


def fit(title, f, weight, low, high, degree, rounding):
    coefficients, values = remez(f, weight, low, high, degree)
    rounded = [rounding(c) for c in coefficients]
    worst = max(abs(w * (y - horner([Decimal(c) for c in rounded], x))) for x, y, w in values)
    print(f"{title}: relative error {worst:.3e} (2^{float(worst.ln() / LN2):.2f})")
    for k, c in enumerate(rounded):
        print(f"    [{k}] {c.hex()}")


def split(title, x, rounding, n):
    print(title)
    for k in range(n):
        part = rounding(x)
        print(f"    part {k}: {part.hex()}")
        x -= Decimal(part)


def main():
    split("ln 2, float", LN2, to_float, 2)
    split("1 / ln 2, float", 1 / LN2, to_float, 1)
    split("ln 2, double", LN2, to_double, 2)
    split("1 / ln 2, double", 1 / LN2, to_double, 1)
    split("pi / 2, double", PI / 2, to_double, 3)
    split("2 / pi, double", 2 / PI, to_double, 1)
    # The reduced argument leaves [-ln2/2, ln2/2] by the rounding of x / ln 2 only.
    half = LN2 / 2 * Decimal("1.0001")
    relative_exp = lambda r: r * r / r.exp()
    fit("exp, float: (e^r - 1 - r) / r^2", exp_tail, relative_exp, -half, half, 4, to_float)
    fit("exp, double: (e^r - 1 - r) / r^2", exp_tail, relative_exp, -half, half, 9, to_double)
    # s = f / (2 + f) with 1 + f in [sqrt(1/2), sqrt(2)].
    s_max = (Decimal(2).sqrt() - 1) / (Decimal(2).sqrt() + 1)
    fit("log, double: (2 atanh(s) - 2s) / s^3 in s^2", atanh_tail, lambda t: t / 2,
        Decimal(0), s_max * s_max, 6, to_double)
    x_max = PI / 4 * Decimal("1.0001")
    fit("sin, double: (sin x - x) / x^3 in x^2", sin_tail, lambda t: t, Decimal(0),
        x_max * x_max, 5, to_double)
    fit("cos, double: (cos x - 1 + x^2/2) / x^4 in x^2", cos_tail, lambda t: t * t, Decimal(0),
        x_max * x_max, 5, to_double)
    fit("normal tail, double: e^(a^2/2) Phi(-a) in (a - 5) / (a + 5)", normal_tail,
        lambda t: 1 / normal_tail(t), -ONE, ONE / 2, 12, to_double)


if __name__ == "__main__":
    main()
