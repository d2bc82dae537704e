"""The formulas as the papers print them, one number at a time: what r1lite/rl is checked against.

No tensors, no masks: a completion is a list of its tokens' numbers, a group a list of rewards, None = unscored.
"""

import math


def mean(values):
    return math.fsum(values) / len(values)


def std(values, ddof):
    centre = mean(values)
    return math.sqrt(math.fsum((value - centre) ** 2 for value in values) / max(1, len(values) - ddof))


def known(group):
    return [reward for reward in group if reward is not None]


def silent(group):
    return len(set(known(group))) < 2


def by_group(groups, advantage):
    """Applies `advantage(reward, index, group)` where the group has a signal and the completion a reward."""
    return [
        [0.0 if silent(group) or reward is None else advantage(reward, i, group) for i, reward in enumerate(group)]
        for group in groups
    ]


# --- advantages ------------------------------------------------------------------------------------------------------


def grpo(groups, ddof=1, eps=1e-4):
    return by_group(groups, lambda r, i, g: (r - mean(known(g))) / (std(known(g), ddof) + eps))


def dr_grpo(groups):
    return by_group(groups, lambda r, i, g: r - mean(known(g)))


def batch_scaled(groups, ddof=1, eps=1e-4):
    everything = [reward for group in groups for reward in known(group)]
    return by_group(groups, lambda r, i, g: (r - mean(known(g))) / (std(everything, ddof) + eps))


def rloo(groups):
    def advantage(reward, i, group):
        others = [other for j, other in enumerate(group) if j != i and other is not None]
        return reward - mean(others)

    return by_group(groups, advantage)


def reinforce(groups):
    everything = [reward for group in groups for reward in known(group)]
    if len(set(everything)) < 2:
        return [[0.0] * len(group) for group in groups]
    return [[0.0 if r is None else r - mean(everything) for r in group] for group in groups]


def opo(groups, lengths):
    found = []
    for group, tokens in zip(groups, lengths, strict=True):
        top = bottom = 0.0
        for reward, length in zip(group, tokens, strict=True):
            if reward is not None:
                top, bottom = top + length * reward, bottom + length
        found.append([0.0 if silent(group) or r is None else r - top / bottom for r in group])
    return found


def maxrl(groups, eps=1e-4):
    return by_group(groups, lambda r, i, g: (r - mean(known(g))) / (mean(known(g)) + eps))


def gdpo(parts, weights, rewards, ddof=1, eps=1e-4):
    """parts: [K][P][G], None = abstains; rewards: None = unscored."""
    sums = [[0.0] * len(group) for group in rewards]
    for part, weight in zip(parts, weights, strict=True):
        heard = [
            [None if reward is None else score for score, reward in zip(scores, group, strict=True)]
            for scores, group in zip(part, rewards, strict=True)
        ]
        for p, row in enumerate(grpo(heard, ddof, eps)):
            for i, z in enumerate(row):
                sums[p][i] += weight * z
    everything = [
        s for row, group in zip(sums, rewards, strict=True) for s, r in zip(row, group, strict=True) if r is not None
    ]
    if len(set(everything)) < 2:
        return [[0.0] * len(group) for group in rewards]
    centre, width = mean(everything), std(everything, ddof) + eps
    return [
        [0.0 if r is None else (s - centre) / width for s, r in zip(row, group, strict=True)]
        for row, group in zip(sums, rewards, strict=True)
    ]


def returns(token_rewards, gamma):
    """sum_{k >= t} gamma^(k - t) rw_k."""
    return [
        math.fsum(gamma ** (k - t) * token_rewards[k] for k in range(t, len(token_rewards)))
        for t in range(len(token_rewards))
    ]


def whitened(rows, eps=1e-8):
    everything = [value for row in rows for value in row]
    centre, variance = mean(everything), std(everything, 1) ** 2
    return [[(value - centre) / math.sqrt(variance + eps) for value in row] for row in rows]


# --- losses: of one token (lp, old, A), or of one completion ---------------------------------------------------------


def clip(s, low, high):
    return min(max(s, 1 - low), 1 + high)


def ppo_token(s, a, low=0.2, high=0.2, dual=None, delta=None):
    first = s if delta is None else min(s, delta)
    objective = min(first * a, clip(s, low, high) * a)
    if dual is not None and a < 0:
        objective = max(objective, dual * a)
    return -objective


def gspo_ratio(lp, old):
    return (math.prod(math.exp(n) for n in lp) / math.prod(math.exp(o) for o in old)) ** (1 / len(lp))


def cispo_token(lp, old, a, cap):
    return -min(math.exp(lp - old), cap) * a * lp


def sapo_token(s, a, positive=1.0, negative=1.05):
    tau = positive if a > 0 else negative
    return -a * (4 / tau) / (1 + math.exp(-tau * (s - 1)))


def gmpo_completion(lp, old, a, low=0.4, high=0.4):
    """The geometric mean of min(s A, clip(s) A)'s ratios, e^-low <= s <= e^high."""
    product = 1.0
    for n, o in zip(lp, old, strict=True):
        s = math.exp(n - o)
        held = min(max(s, math.exp(-low)), math.exp(high))
        product *= min(s, held) if a > 0 else max(s, held)
    return -a * product ** (1 / len(lp))


def reinforce_token(lp, a):
    return -a * lp


# --- KL of one token -------------------------------------------------------------------------------------------------


def kl(name, lp, ref, old=None):
    r = math.exp(ref) / math.exp(lp)
    if name in ("k1", "k1+"):
        return -math.log(r)
    if name == "k2":
        return math.log(r) ** 2 / 2
    k3 = r - 1 - math.log(r)
    return k3 if name in ("k3", "k3+") else math.exp(lp) / math.exp(old) * k3


def kl_gradient(name, lp, ref, old=None):
    """By lp, as autograd is to see it."""
    if name == "k1":
        return 1.0
    if name in ("k2", "k1+", "k3+"):
        return lp - ref
    r = math.exp(ref - lp)
    if name == "k3":
        return 1 - r
    return math.exp(lp - old) * ((r - 1 - math.log(r)) + (1 - r))


# --- from tokens to a loss -------------------------------------------------------------------------------------------


def aggregated(rows, method, max_tokens):
    """rows: completions as lists of values; empty ones count nowhere."""
    rows = [row for row in rows if row]
    if method == "token_mean":
        return math.fsum(v for row in rows for v in row) / sum(map(len, rows))
    if method == "sequence_mean":
        return mean([mean(row) for row in rows])
    if method == "sequence_sum":
        return mean([math.fsum(row) for row in rows])
    return math.fsum(math.fsum(row) for row in rows) / (len(rows) * max_tokens)


# --- entropy ---------------------------------------------------------------------------------------------------------


def entropy(probabilities):
    return -math.fsum(p * math.log(p) for p in probabilities if p > 0)


def quantile(values, q):
    """With linear interpolation between neighbours."""
    ordered = sorted(values)
    place = q * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])
