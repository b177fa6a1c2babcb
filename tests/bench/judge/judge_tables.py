#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Judges the intervals that `paceline report` prints for generated tables of runs whose laws are known.

usage: judge_tables.py PACELINE [--tables 1000] [--seed 1] [--law NAME]
       judge_tables.py --bounds

Nine programs, each with a law and a noise of its own, are drawn as CSV tables. Every interval of a law or a prediction
is compared with the truth, with its own estimate, and with an oracle: the interval of the weighted least squares
estimate by one who knows the law and the noise. Prints for each figure how many intervals hold the truth, how many of
them do not hold their estimate, the median of width ÷ oracle's width, in how many tables it was printed, and in how many
of them the truth is at least the lower end, or what costs that do not show would leave (speedup_at_least). A law that
is not that of the table may be chosen; its predictions count all the same, because the reader sees them. The exit status
is 1 if an interval lacks its estimate, or if intervals of a figure hold the truth in less than 93 % and three standard
errors.

--bounds prints, for the laws with two parameters, how far the nearest law of the other form is: d, in standard deviations
of the times. An interval that holds the truth of each of the two laws in 95 % leaves out that of the other one with
probability Φ(d − 1.645) at most (J. Neyman and E. S. Pearson, 1933), so it holds both in at least 0.95 − Φ(d − 1.645). If
that is half or more, the median width is at least the distance of the two truths, even if the noise is known.
"""
import argparse
import json
import math
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile

RANKS = [1, 2, 4, 8, 16]


def usl(n, s, k):
    return (1 + s * (n - 1) + k * n * (n - 1)) / n


def logarithmic(n, s, c):
    return (1 + s * (n - 1) + c * n * math.log2(n)) / n


def gustafson(n, s):
    return 1 / (n - s * (n - 1))


# name: (time of one image on N ranks by its parameters, the parameters, names of the report for them, weak scaling, noise,
# its relative standard deviation, repeats; 0: one run, and the table gives the deviation)
LAWS = {
    "Amdahl 0.05": (lambda n, s: usl(n, s, 0), [0.05], ["s"], False, "normal", 0.01, 3),
    "Amdahl 0.3": (lambda n, s: usl(n, s, 0), [0.3], ["s"], False, "normal", 0.02, 0),
    "USL": (usl, [0.03, 0.003], ["sigma", "kappa"], False, "lognormal", 0.02, 4),
    "USL, no contention": (usl, [0.0, 0.005], ["sigma", "kappa"], False, "t5", 0.01, 3),
    "logarithmic": (logarithmic, [0.02, 0.02], [], False, "normal", 0.01, 3),
    "Gustafson": (gustafson, [0.1], ["gs"], True, "normal", 0.01, 3),
    "weak, logarithmic": (logarithmic, [0.0, 0.03], [], True, "exponential", 0.01, 5),
    "weak, USL": (usl, [0.02, 0.001], [], True, "uniform", 0.01, 3),
    "USL, hardly seen": (usl, [0.03, 0.0003], [], False, "normal", 0.01, 3),  # most tables fit Amdahl's law as well
}


def noise_of(kind, draw):
    if kind == "lognormal":
        return (math.exp(0.5 * draw.gauss(0, 1)) - math.exp(0.125)) / 0.604
    if kind == "t5":
        return draw.gauss(0, 1) / math.sqrt(draw.gammavariate(2.5, 2) / 5) / math.sqrt(5 / 3)
    if kind == "exponential":
        return draw.expovariate(1) - 1
    if kind == "uniform":
        return draw.uniform(-1, 1) * math.sqrt(3)
    return draw.gauss(0, 1)


def table_of(law, draw):
    time, parameters, _, weak, noise, deviation, repeats = law
    lines = ["ranks,epochs,images,seconds" + (",seconds_sd" if repeats == 0 else "")]
    for n in RANKS:
        images = 1000 * (n if weak else 1)
        for _ in range(max(repeats, 1)):
            seconds = 0.1 * images * time(n, *parameters)
            drawn = seconds * math.exp(deviation * noise_of(noise, draw))
            lines.append(f"{n},1,{images},{drawn:.9f}" + (f",{deviation * seconds:.9f}" if repeats == 0 else ""))
    return "\n".join(lines) + "\n"


def solve(matrix, vector):
    n = len(vector)
    rows = [row[:] + [value] for row, value in zip(matrix, vector)]
    for i in range(n):
        pivot = max(range(i, n), key=lambda r: abs(rows[r][i]))
        rows[i], rows[pivot] = rows[pivot], rows[i]
        for r in range(n):
            if r != i:
                factor = rows[r][i] / rows[i][i]
                rows[r] = [a - factor * b for a, b in zip(rows[r], rows[i])]
    return [rows[i][n] / rows[i][i] for i in range(n)]


def oracle_width(law, figure):
    """2 × 1.96 standard errors of a figure of the parameters, by the information of the table."""
    time, parameters, _, _, _, deviation, repeats = law
    step = 1e-5

    def gradient(function):
        out = []
        for i in range(len(parameters)):
            up, down = parameters[:], parameters[:]
            up[i] += step
            down[i] -= step
            out.append((function(up) - function(down)) / (2 * step))
        return out

    rows = [[1.0] + gradient(lambda p, n=n: math.log(time(n, *p))) for n in RANKS]  # with the scale
    weight = max(repeats, 1) / deviation**2
    size = len(parameters) + 1
    information = [[weight * sum(row[i] * row[j] for row in rows) for j in range(size)] for i in range(size)]
    slope = [0.0] + gradient(figure)
    return 2 * 1.96 * math.sqrt(sum(a * b for a, b in zip(slope, solve(information, slope))))


def speedup_width(law, n):
    """The oracle's width of S(n)."""
    time = law[0]
    return oracle_width(law, lambda p: time(1, *p) / time(n, *p))


def nearest(law, form):
    """The law of the form whose times are the nearest to those of a law: its time by ranks, and the distance d."""
    time, parameters, _, _, _, deviation, repeats = law
    terms = [[form(n, *p) / time(n, *parameters) for p in ((0, 0), (1, 0), (0, 1))] for n in RANKS]
    rows = [[one, share - one, growth - one] for one, share, growth in terms]  # time = one + s share + c growth
    best = None
    for used in ([0, 1, 2], [0, 1], [0, 2], [0]):  # the parameters are at least 0
        matrix = [[sum(row[a] * row[b] for row in rows) for b in used] for a in used]
        found = dict(zip(used, solve(matrix, [sum(row[a] for row in rows) for a in used])))
        squares = sum((1 - sum(row[a] * value for a, value in found.items())) ** 2 for row in rows)
        if min(found.values()) >= 0 and (best is None or squares < best[0]):
            best = squares, [found.get(a, 0) / found[0] for a in (1, 2)]
    return lambda n: form(n, *best[1]), math.sqrt(best[0] * max(repeats, 1)) / deviation


def print_bounds():
    for name, law in LAWS.items():
        time, parameters = law[:2]
        if len(parameters) < 2:
            continue
        other, distance = nearest(law, usl if time is logarithmic else logarithmic)
        both = 0.95 - statistics.NormalDist().cdf(distance - 1.645)
        line = f"{name:20} d = {distance:4.2f}, holds both in {100 * max(both, 0):4.1f} %"
        for n in (2 * RANKS[-1], 4 * RANKS[-1]):
            apart = abs(other(1) / other(n) - time(1, *parameters) / time(n, *parameters))
            line += f", S({n}) at least {apart / speedup_width(law, n):.2f} times the oracle's width" if both >= 0.5 else ""
        print(line)


def figures_of(scaling):
    """Name: (estimate, interval or None), of predictions also the least value that is named."""
    out = {}
    fit = scaling.get("amdahl")
    if fit:
        if not fit.get("refused"):
            out["s"] = (fit["serial_fraction"], fit.get("ci95"))
        for name in ("sigma", "kappa"):
            if name in fit.get("usl", {}):
                out[name] = (fit["usl"][name], fit["usl"].get(name + "_ci95"))
    for weak in scaling.get("gustafson", []):
        if not weak.get("refused"):
            out["gs"] = (weak["serial_fraction"], weak.get("ci95"))
    for choice in scaling.get("law_choice", [])[:1]:
        for prediction in choice.get("predictions", []):
            interval = prediction.get("speedup_ci95")
            least = prediction.get("speedup_at_least", interval[0] if interval else None)
            out[f"S({prediction['ranks']})"] = (prediction["speedup"], interval, least)
    return out


def report_of(paceline, table):
    with tempfile.TemporaryDirectory() as temporary:
        path = pathlib.Path(temporary) / "runs.csv"
        path.write_text(table)
        done = subprocess.run([paceline, "report", "--format", "json", str(path)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"judge_tables.py: paceline report failed: {done.stderr}")
    return figures_of(json.loads(done.stdout)["scaling"])


def judge(name, law, tables, figures_of_table, draw):
    time, parameters, names, _, _, _, _ = law
    truths = dict(zip(names, parameters))
    oracles = {of: oracle_width(law, lambda p, i=i: p[i]) for i, of in enumerate(names)}
    for n in (2 * RANKS[-1], 4 * RANKS[-1]):
        truths[f"S({n})"] = time(1, *parameters) / time(n, *parameters)
        oracles[f"S({n})"] = speedup_width(law, n)
    counts = {of: [0, 0, 0, [], 0] for of in truths}
    for _ in range(tables):
        found = figures_of_table(table_of(law, draw))
        for of, (estimate, interval, *least) in found.items():
            if of not in truths or not interval:
                continue
            low, high = interval
            count = counts[of]
            count[0] += 1
            count[1] += low - 1e-9 <= truths[of] <= high + 1e-9
            count[2] += not low - 1e-9 <= estimate <= high + 1e-9
            count[3].append((high - low) / oracles[of])
            count[4] += (least or [low])[0] - 1e-9 <= truths[of]
    good = True
    for of, (shown, held, without, widths, above) in counts.items():
        fine = without == 0 and held >= (0.93 - 3 * math.sqrt(0.07 * 0.93 / max(shown, 1))) * shown
        good = good and fine
        width = f"{statistics.median(widths):5.2f}" if widths else "  –  "
        print(f"{name:20} {of:8} {truths[of]:9.4f}   {100 * held / max(shown, 1):5.1f} %   {without:5}   {width}   "
              f"{100 * shown / tables:5.1f} %   {100 * above / max(shown, 1):5.1f} %{'' if fine else '   LIMIT BROKEN'}",
              flush=True)
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("paceline", nargs="?")
    parser.add_argument("--bounds", action="store_true")
    parser.add_argument("--tables", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--law")
    options = parser.parse_args()
    if options.bounds:
        print_bounds()
        return 0
    if options.paceline is None:
        parser.error("PACELINE is absent: the program whose reports are judged")
    print(f"{'law':20} {'figure':8} {'truth':>9}   holds     without estimate   width   shown     at least")
    good = True
    for name, law in LAWS.items():
        if options.law in (None, name):
            draw = random.Random(f"{options.seed} {name}")
            good = judge(name, law, options.tables, lambda table: report_of(options.paceline, table), draw) and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
