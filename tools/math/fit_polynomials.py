#!/usr/bin/env python3
"""Fit the polynomials of src/kernels/math.h and print src/kernels/polynomials.h.

    python3 tools/math/fit_polynomials.py > src/kernels/polynomials.h

Each fit is minimax (Remez's exchange, 60 digits) in the weight that makes the error of the whole
function even. Coefficients are rounded to float one after the other, lowest degree first, and the
rest is fitted again after each, so that later ones take up the rounding of earlier ones.
Needs mpmath and numpy.
"""
import mpmath as mp
import numpy as np

mp.mp.dps = 60
GRID = 1500


def to_float(value):
    """Nearest float32, by way of float64: a double rounding costs nothing that matters here."""
    return np.float32(float(value))


def remez(target, weight, powers, low, high):
    """Coefficients c of sum c[i] x^powers[i] with the least largest |weight * (sum - target)|."""
    count = len(powers)
    nodes = [low + (high - low) * (1 - mp.cos(mp.pi * (i + mp.mpf(1) / 2) / (count + 1))) / 2
             for i in range(count + 1)]
    points = [low + (high - low) * (1 - mp.cos(mp.pi * i / GRID)) / 2 for i in range(GRID + 1)]
    targets = [target(x) for x in points]
    weights = [weight(x) for x in points]
    for _ in range(30):
        system = mp.matrix(count + 1, count + 1)
        right = mp.matrix(count + 1, 1)
        for row, x in enumerate(nodes):
            for column, power in enumerate(powers):
                system[row, column] = x ** power
            system[row, count] = (-1) ** row / weight(x)
            right[row] = target(x)
        solution = mp.lu_solve(system, right)
        c = [solution[i] for i in range(count)]
        errors = [w * (sum(k * x ** p for k, p in zip(c, powers)) - t)
                  for x, t, w in zip(points, targets, weights)]
        # The largest error of each run of one sign is the next set of nodes.
        extrema = []
        for x, error in zip(points, errors):
            if extrema and (extrema[-1][1] > 0) == (error > 0):
                if abs(error) > abs(extrema[-1][1]):
                    extrema[-1] = (x, error)
            else:
                extrema.append((x, error))
        while len(extrema) > count + 1:
            extrema.pop(0 if abs(extrema[0][1]) < abs(extrema[-1][1]) else -1)
        if len(extrema) < count + 1:
            break
        nodes = [x for x, _ in extrema]
        worst = max(abs(e) for e in errors)
        if worst < abs(solution[count]) * mp.mpf("1.0001"):
            break
    return c, max(abs(e) for e in errors)


def fit(target, weight, degree, low, high):
    """Float coefficients, constant first, and the largest weighted error they leave."""
    low, high = mp.mpf(low), mp.mpf(high)
    fixed = []
    for power in range(degree + 1):
        def rest(x):
            return target(x) - sum(mp.mpf(float(c)) * x ** i for i, c in enumerate(fixed))
        c, _ = remez(rest, weight, list(range(power, degree + 1)), low, high)
        fixed.append(to_float(c[0]))
    points = [low + (high - low) * i / GRID for i in range(GRID + 1)]
    error = max(abs(weight(x) * (sum(mp.mpf(float(c)) * x ** i for i, c in enumerate(fixed))
                                 - target(x))) for x in points)
    return fixed, error


def text(value):
    """A float constant of C in hexadecimal, without idle zeros."""
    digits, exponent = float(value).hex().split("p")
    return f"{digits.rstrip('0').rstrip('.')}p{exponent}f"


def show(name, comment, fitted):
    coefficients, error = fitted
    print(f"/* {comment}: error {mp.nstr(error, 2)}. */")
    print(f"static const float {name}[{len(coefficients)}] = {{")
    for c in coefficients:
        print(f"    {text(c)},")
    print("};\n")


def constant(name, value):
    print(f"#define {name} {text(to_float(value))}")


def main():
    ln2 = mp.log(2)
    tiny = mp.mpf(2) ** -40  # keeps 0 / 0 out of the quotients

    print("/* Made by tools/math/fit_polynomials.py: coefficients of math.h, constant term first.\n"
          " * Errors are those of the exact polynomial, relative unless said otherwise. */")
    print("#ifndef LS_KERNELS_POLYNOMIALS_H\n#define LS_KERNELS_POLYNOMIALS_H\n")
    print("/* clang-format off */")
    high = mp.mpf(int(ln2 * 2 ** 15)) / 2 ** 15  # 15 bits: n * high is exact for |n| < 2^9
    constant("LN2_HIGH", high)
    constant("LN2_LOW", ln2 - high)
    constant("LOG2_E", 1 / ln2)
    print()
    show("exp_polynomial", "exp(r) = 1 + r + r^2 P(r), |r| <= ln(2) / 2",
         fit(lambda r: (mp.exp(r) - 1 - r) / r ** 2 if abs(r) > tiny else mp.mpf(1) / 2,
             lambda r: max(r ** 2, tiny) / mp.exp(r), 4, -ln2 / 2 * 1.01, ln2 / 2 * 1.01))
    show("log_polynomial", "log(1 + f) = f - f^2 / 2 + f^3 P(f), sqrt(1/2) <= 1 + f <= sqrt(2)",
         fit(lambda f: ((mp.log(1 + f) - f + f ** 2 / 2) / f ** 3 if abs(f) > tiny
                        else mp.mpf(1) / 3),
             lambda f: max(f ** 2, tiny), 8, mp.sqrt(0.5) - 1, mp.sqrt(2) - 1))
    show("tanh_polynomial", "tanh(x) = x + x s P(s), s = x^2, |x| <= 0.625",
         fit(lambda s: ((mp.tanh(mp.sqrt(s)) / mp.sqrt(s) - 1) / s if s > tiny
                        else -mp.mpf(1) / 3),
             lambda s: max(s, tiny), 4, 0, mp.mpf("0.625") ** 2))
    show("erf_polynomial", "erf(x) = x + x P(s), s = x^2, |x| <= 1",
         fit(lambda s: (mp.erf(mp.sqrt(s)) / mp.sqrt(s) if s > tiny else 2 / mp.sqrt(mp.pi)) - 1,
             lambda s: mp.mpf(1), 6, 0, 1))
    show("erfc_polynomial", "erfc(x) = exp(-x^2) P(x), 1 <= x <= 4, absolute",
         fit(lambda x: mp.exp(x * x) * mp.erfc(x), lambda x: mp.exp(-x * x), 7, 1, 4))
    print("/* clang-format on */\n\n#endif")


if __name__ == "__main__":
    main()
