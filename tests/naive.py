"""The definitions, as plain loops over floats. Never optimised; shares nothing with the kernels but the ensemble's arrays."""

import itertools
import math
from fractions import Fraction

import numpy as np


def goes_left(ensemble, node, x):
    """Where one value goes at one node, by the words of ``TreeEnsemble``."""
    feature = ensemble.feature[node]
    if ensemble.single_precision:
        with np.errstate(over="ignore"):
            x = float(np.float32(x))
    if math.isnan(x) or (ensemble.zero_missing[feature] and abs(x) <= float(np.float32(1e-35))):
        return bool(ensemble.missing_left[node])
    if ensemble.category_set[node] < 0:
        return x <= ensemble.threshold[node]
    n = int(ensemble.n_categories[feature])
    code = math.trunc(x) if 0 <= x < n else (0 if -1 < x < 0 else n)
    word = ensemble.set_words[ensemble.set_start[ensemble.category_set[node]] + code // 32]
    return bool((int(word) >> (code % 32)) & 1)


def margin(ensemble, row):
    """Raw score of one row, ``(outputs,)`` float64: every tree descended, leaves added in tree order."""
    out = ensemble.base.astype(float).copy()
    for tree, node in enumerate(ensemble.root):
        while ensemble.feature[node] >= 0:
            side = ensemble.left if goes_left(ensemble, node, float(row[ensemble.feature[node]])) else ensemble.right
            node = side[node]
        if ensemble.value.shape[1] == 1:
            out[ensemble.output[tree]] += ensemble.value[node, 0]
        else:
            out += ensemble.value[node]
    return out


def margins(ensemble, rows):
    """``(n, outputs)`` float64."""
    return np.array([margin(ensemble, row) for row in rows]).reshape(len(rows), ensemble.base.size)


def _visit(ensemble, node, row, present, number, k):
    feature = ensemble.feature[node]
    if feature < 0:
        return number(float(ensemble.value[node, k]))
    left, right = ensemble.left[node], ensemble.right[node]
    if feature in present:
        child = left if goes_left(ensemble, node, float(row[feature])) else right
        return _visit(ensemble, child, row, present, number, k)
    cover_left, cover_right = number(float(ensemble.cover[left])), number(float(ensemble.cover[right]))
    total = cover_left + cover_right
    weight = cover_left / total if total else number(1) / 2
    return weight * _visit(ensemble, left, row, present, number, k) + (1 - weight) * _visit(ensemble, right, row, present, number, k)


def coalition_value(ensemble, row, present, output, number=Fraction):
    """v(S) of the path-dependent game (Lundberg et al. 2018, Alg. 1): absent features averaged by cover, halves where there is none."""
    total = number(float(ensemble.base[output]))
    for tree, root in enumerate(ensemble.root):
        if ensemble.value.shape[1] > 1:
            total += _visit(ensemble, root, row, present, number, output)
        elif ensemble.output[tree] == output:
            total += _visit(ensemble, root, row, present, number, 0)
    return total


def shapley_weight(size, n):
    return Fraction(math.factorial(size) * math.factorial(n - size - 1), math.factorial(n))


def banzhaf_weight(size, n, p=Fraction(1, 2)):
    return p**size * (1 - p) ** (n - 1 - size)


def beta_weight(size, n, alpha, beta):
    """Integral of t^size (1 - t)^(n - 1 - size) over the Beta density t^(beta - 1) (1 - t)^(alpha - 1), for whole parameters."""
    rising = lambda x, k: math.prod(range(x, x + k))  # noqa: E731 - a definition in a line
    return Fraction(rising(beta, size) * rising(alpha, n - 1 - size), rising(alpha + beta, n - 1))


def real_beta_weight(size, n, alpha, beta):
    """The same for real parameters, by logarithms of gamma functions."""
    log_beta = lambda a, b: math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)  # noqa: E731 - a definition in a line
    return math.exp(log_beta(size + beta, n - 1 - size + alpha) - log_beta(beta, alpha))


def semivalue(ensemble, row, weight):
    """Every phi by enumeration of all subsets in exact fractions, ``(outputs, features)`` float64."""
    n = ensemble.n_features
    phi = np.zeros((ensemble.base.size, n))
    for k in range(ensemble.base.size):
        subsets = itertools.chain.from_iterable(itertools.combinations(range(n), size) for size in range(n + 1))
        v = {s: coalition_value(ensemble, row, s, k) for s in subsets}
        for j in range(n):
            others = [s for s in v if j not in s]
            phi[k, j] = float(sum(weight(len(s), n) * (v[tuple(sorted((*s, j)))] - v[s]) for s in others))
    return phi


def size_weight(sizes):
    """The weight of one coalition where all of a size share its probability: sizes[size] / C(n - 1, size) (Weber 1988)."""
    return lambda size, n: Fraction(float(sizes[size])) / math.comb(n - 1, size)


def _subsets(players):
    return itertools.chain.from_iterable(itertools.combinations(players, size) for size in range(len(players) + 1))


def game(ensemble, row, output, background=None):
    """The game as a function of a set of features, every value computed once; with a background the marginal one (Filom et al. 2024, Def. 2.2)."""
    known = {}

    def v(features):
        features = frozenset(features)
        if features not in known:
            if background is None:
                known[features] = coalition_value(ensemble, row, features, output)
            else:
                mixed = np.where(np.isin(np.arange(ensemble.n_features), list(features)), row, background)
                known[features] = sum(Fraction(float(margin(ensemble, x)[output])) for x in mixed) / len(mixed)
        return known[features]

    return v


def quotient_semivalue(ensemble, row, group, n_groups, weight, background=None):
    """The same for groups of features that join together, ``group (features,)``: phi of every group, ``(outputs, n_groups)`` float64."""
    phi = np.zeros((ensemble.base.size, n_groups))
    for k in range(ensemble.base.size):
        of_features = game(ensemble, row, k, background)
        v = {s: of_features([j for j, g in enumerate(group) if g in s]) for s in _subsets(range(n_groups))}
        for g in range(n_groups):
            others = [s for s in v if g not in s]
            phi[k, g] = float(sum(weight(len(s), n_groups) * (v[tuple(sorted((*s, g)))] - v[s]) for s in others))
    return phi


def _members(group):
    return [[j for j, g in enumerate(group) if g == number] for number in range(max(group) + 1)]


def thinned_weight(sizes, size, n):
    """The weight of a coalition of ``size`` others among n players, where the other of ``len(sizes)`` players have no effect: the sum of the weights
    of all coalitions that differ by these alone."""
    others, n_null = len(sizes) - 1, len(sizes) - n
    return sum(math.comb(n_null, more) * sizes[size + more] / Fraction(math.comb(others, size + more)) for more in range(n_null + 1))


def owen(ensemble, row, group, background=None, across=shapley_weight, within=shapley_weight):
    """Coalitional values by their definition (Filom et al. 2024, Eq. E.6), of Shapley's weights the Owen value (Owen 1977, Eq. 7), ``(outputs,
    features)``: sums over sets of whole other groups and members of one's own."""
    n, n_groups = ensemble.n_features, int(max(group)) + 1
    members = _members(group)
    phi = np.zeros((ensemble.base.size, n))
    for k in range(ensemble.base.size):
        v = game(ensemble, row, k, background)
        for j in range(n):
            mine = [i for i in members[group[j]] if i != j]
            total = Fraction(0)
            for others in _subsets([g for g in range(n_groups) if g != group[j]]):
                whole = [i for g in others for i in members[g]]
                for some in _subsets(mine):
                    weight = across(len(others), n_groups) * within(len(some), len(mine) + 1)
                    total += weight * (v([*whole, *some, j]) - v([*whole, *some]))
            phi[k, j] = float(total)
    return phi


def _shapley_of(v, players, player):
    """One player's Shapley value in a game of sets of players."""
    others = _subsets([other for other in players if other != player])
    return sum(shapley_weight(len(s), len(players)) * (v([*s, player]) - v(s)) for s in others)


def two_step(ensemble, row, group, background=None):
    """Two-step Shapley values by their definition (Kamijo 2009; Filom et al. 2024, Eq. B.12), ``(outputs, features)``."""
    members = _members(group)
    phi = np.zeros((ensemble.base.size, ensemble.n_features))
    for k in range(ensemble.base.size):
        start = game(ensemble, row, k, background)
        v = lambda s, start=start: start(s) - start(())  # noqa: E731 - a definition in a line
        for g, mine in enumerate(members):
            whole = _shapley_of(lambda groups, v=v: v([j for h in groups for j in members[h]]), range(len(members)), g)
            for j in mine:
                phi[k, j] = float(_shapley_of(v, mine, j) + (whole - v(mine)) / len(mine))
    return phi


def asymmetric(ensemble, row, group, sequence, background=None):
    """Asymmetric Shapley values by their definition (Frye, Rowat and Feige 2020), ``(outputs, features)``: the mean over all orders of features in
    which those of an earlier group come before those of a later one."""
    phi, members = np.zeros((ensemble.base.size, ensemble.n_features)), _members(group)
    orders = [sum(parts, ()) for parts in itertools.product(*(itertools.permutations(members[g]) for g in sequence))]
    for k in range(ensemble.base.size):
        v = game(ensemble, row, k, background)
        for j in range(ensemble.n_features):
            before = [order[: order.index(j)] for order in orders]
            phi[k, j] = float(sum(v([*some, j]) - v(some) for some in before) / len(orders))
    return phi


def interactions(ensemble, row, weight, background=None):
    """Interaction index of every two features (Grabisch and Roubens 1999), ``(outputs, features, features)``, 0 on the diagonal.

    ``weight(size, n - 1)`` is that of a set of ``size`` others in the game in which the two are one player.
    """
    n = ensemble.n_features
    found = np.zeros((ensemble.base.size, n, n))
    for k in range(ensemble.base.size):
        v = game(ensemble, row, k, background)
        for i, j in itertools.combinations(range(n), 2):
            others = _subsets([m for m in range(n) if m not in (i, j)])
            total = sum(weight(len(s), n - 1) * (v([*s, i, j]) - v([*s, i]) - v([*s, j]) + v(s)) for s in others)
            found[k, i, j] = found[k, j, i] = float(total)
    return found


def _chance(z, others, present):
    """Probability that of these features those present are, each by itself with probability z."""
    return math.prod((z[j] if j in present else 1 - z[j] for j in others), start=Fraction(1))


def extension(ensemble, row, z, output, background=None):
    """The multilinear extension (Owen 1972): the expected value where each feature is present with a probability of its own, in fractions."""
    v, z = game(ensemble, row, output, background), [Fraction(float(p)) for p in z]
    return sum(_chance(z, range(len(z)), s) * v(s) for s in _subsets(range(len(z))))


def gradient(ensemble, row, z, output, background=None):
    """Its derivatives (Owen 1972, Eq. 8), in fractions: each feature's expected effect."""
    v, z = game(ensemble, row, output, background), [Fraction(float(p)) for p in z]
    others = [[j for j in range(len(z)) if j != i] for i in range(len(z))]
    return [sum(_chance(z, others[i], s) * (v([*s, i]) - v(s)) for s in _subsets(others[i])) for i in range(len(z))]


def ranker(ensemble, row, output, steps, rate, adaptive, background=None):
    """TreeGrad-Ranker line by line (Li, Yu and Low 2026, Alg. 2 and 10, the denominator of Kingma and Ba 2015): scores, and the objective's path."""
    z = np.full(ensemble.n_features, 0.5)
    scores, mean, square = np.zeros(z.size), np.zeros(z.size), np.zeros(z.size)
    path = []
    for t in range(1, steps + 1):
        at_z, at_rest = (np.array(gradient(ensemble, row, point, output, background), float) for point in (z, 1 - z))
        up, down = (extension(ensemble, row, point, output, background) for point in (z, 1 - z))
        path.append(float(up - down) / 2)
        g = (at_z + at_rest) / 2
        scores = (t - 1) / t * scores + g / t
        mean, square = 0.9 * mean + 0.1 * g, 0.999 * square + 0.001 * g**2
        step = mean / (1 - 0.9**t) / (np.sqrt(square / (1 - 0.999**t)) + 1e-8) if adaptive else g
        z = np.clip(z + rate * step, 0, 1)
    return scores, np.array(path)


def ranking(scores):
    """Features by descending score, equal ones in their own order."""
    return sorted(range(len(scores)), key=lambda j: -scores[j])


def insertion(ensemble, row, scores, output, background=None):
    """f(S) for the features on top of the ranking, from none to all, in fractions (Li, Yu and Low 2026, Eq. 5)."""
    order, v = ranking(scores), game(ensemble, row, output, background)
    return [v(order[:k]) for k in range(len(order) + 1)]


def deletion(ensemble, row, scores, output, background=None):
    """f(S) for the features at the bottom of the ranking, from none to all, in fractions (ibid.)."""
    order, v = ranking(scores)[::-1], game(ensemble, row, output, background)
    return [v(order[:k]) for k in range(len(order) + 1)]


def lengthen(first, second):
    """Two lists, each with what only the other has added at its end (after Karczmarz et al. 2022, Table 1)."""
    return [*first, *(player for player in second if player not in first)], [*second, *(player for player in first if player not in second)]


def sort_by(first, second):
    """The first list in the order of the second, at whose end the first's other members stand in their order (ibid.)."""
    return sorted(first, key=lengthen(first, second)[1].index)


def swaps(first, second):
    """The fewest swaps of two members that turn one list into the other: all lists that are one swap away, then two, …"""
    reached, n_swaps = {tuple(first)}, 0
    while tuple(second) not in reached:
        reached |= {_swapped(there, i, j) for there in reached for i, j in itertools.combinations(range(len(there)), 2)}
        n_swaps += 1
    return n_swaps


def _swapped(members, i, j):
    swapped = list(members)
    swapped[i], swapped[j] = swapped[j], swapped[i]
    return tuple(swapped)


ZERO = float(np.float32(1e-35))  # what LightGBM takes for zero


def _numbers_beside(ensemble, feature):
    """All numbers that may be the nearest on some side of a threshold of the feature, or of what is missing."""
    edges = [float(t) for t in ensemble.threshold[(ensemble.feature == feature)]] + [ZERO, -ZERO] * bool(ensemble.zero_missing[feature])
    kind = np.float32 if ensemble.single_precision else np.float64
    with np.errstate(over="ignore"):
        held = [kind(edge) for edge in edges]
        near = {float(each) for edge in held for each in (edge, np.nextafter(edge, kind(np.inf)), np.nextafter(edge, kind(-np.inf)))}
    return [each for each in near if np.isfinite(each) and not (ensemble.zero_missing[feature] and abs(each) <= ZERO)]


def nearest_change(ensemble, row, feature, at, below, up=True, down=True):
    """The nearest value of a feature on the other side of a threshold, by trying all; None where there is none.

    Margins from ``at`` on are above it, those less than ``below`` are below it. Of categories the first that crosses.
    """

    def side(value):
        changed = np.array(row, float)
        changed[feature] = value
        found = float(margin(ensemble, changed)[0])
        return 1 if found >= at else -1 if found < below else 0

    x, n_codes = row[feature], ensemble.n_categories[feature]
    mine = side(x)
    if n_codes:
        here = int(x) if -1 < x < n_codes else -1
        return next((float(code) for code in range(n_codes) if code != here and mine and side(code) == -mine), None)
    x = float(np.float32(x)) if ensemble.single_precision else x
    if not mine or np.isnan(x) or (ensemble.zero_missing[feature] and abs(x) <= ZERO):
        return None
    crossing = [z for z in _numbers_beside(ensemble, feature) if side(z) == -mine and (up if z > x else down)]
    return min(crossing, key=lambda z: (abs(z - x), z > x, z if z > x else -z), default=None)
