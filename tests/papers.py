"""The formulas as the papers print them, one number at a time: what r1lite/rl is checked against.

No tensors, no masks: a completion is a list of its tokens' numbers, a group a list of rewards, None = unscored.
"""

import itertools
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


def pass_at_k(groups, k):
    """By enumerating every k-subset: its reward is its best member's."""

    def advantages(group):
        places = [i for i, r in enumerate(group) if r is not None]
        subsets = list(itertools.combinations(places, k)) if len(places) >= k else []
        rewards = [max(group[i] for i in subset) for subset in subsets]
        if len(set(rewards)) < 2:
            return [0.0] * len(group)
        centre, width = mean(rewards), std(rewards, 0)
        return [
            mean([(r - centre) / width for r, subset in zip(rewards, subsets, strict=True) if i in subset])
            if group[i] is not None
            else 0.0
            for i in range(len(group))
        ]

    return [advantages(group) for group in groups]


def best_of_group(groups, ddof=1, eps=1e-4):
    def advantage(reward, i, group):
        first, second = sorted(known(group))[:-3:-1]
        return (first - second) / (std(known(group), ddof) + eps) if reward == first else 0.0

    return by_group(groups, advantage)


def normalized(rows, scored, eps=1e-4):
    everything = [a for row, kept in zip(rows, scored, strict=True) for a, keep in zip(row, kept, strict=True) if keep]
    if len(set(everything)) < 2:
        return [[0.0] * len(row) for row in rows]
    return [
        [
            (a - mean(everything)) / (std(everything, 1) + eps) if keep else 0.0
            for a, keep in zip(row, kept, strict=True)
        ]
        for row, kept in zip(rows, scored, strict=True)
    ]


def optimal_token(rewards, energies, eps=1e-8):
    """energies: of each completion's tokens; None = unscored."""
    if silent(rewards):
        return [[0.0] * len(row) for row in energies]
    found = []
    for reward, row in zip(rewards, energies, strict=True):
        found.append([])
        for t in range(len(row)):
            there = [
                (r, math.fsum(e[: t + 1]))
                for r, e in zip(rewards, energies, strict=True)
                if r is not None and len(e) > t
            ]
            top, bottom = math.fsum(r * w for r, w in there), math.fsum(w for _, w in there)
            baseline = top / (bottom + eps) if len(there) > 1 else 0.0
            found[-1].append(0.0 if reward is None else reward - baseline)
    return found


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


def completion_ratio(lp, old):
    return math.prod(math.exp(n) for n in lp) / math.prod(math.exp(o) for o in old)


def binary_divergence(lp, old, kind, eps=1e-8):
    p, mu = math.exp(lp), math.exp(old)
    if kind == "tv":
        return abs(p - mu)
    return mu * math.log(mu / p) + (1 - mu) * math.log((1 - mu + eps) / (1 - p + eps))


def dppo_token(lp, old, a, kind, low, high, cap=20.0):
    """-A min(s, cap) lp, without the tokens that went too far their own way."""
    far = binary_divergence(lp, old, kind)
    if (a > 0 and lp > old and far > high) or (a < 0 and lp < old and far > low):
        return 0.0
    return -a * min(math.exp(lp - old), cap) * lp


def vespo_weight(lp, old, a, correction=1.0):
    c1, c2 = (2.0, 3.0) if a >= 0 else (3.0, 2.0)
    w = completion_ratio(lp, old) * correction
    return w**c1 * math.exp(c2 * (1 - w))


def kl_cov_token(lp, old, a, chosen, coef=1.0):
    return -a * math.exp(lp - old) + (coef * abs(lp - old) if chosen else 0.0)


def dro_token(lp, old, a, beta):
    return -(lp * a - 0.5 * beta * (lp - old) ** 2)


def positive_nll(right):
    """VAPO, eq. 9: `right` holds the log-probabilities of each right completion's tokens."""
    tokens = [logprob for row in right for logprob in row]
    return -math.fsum(tokens) / len(tokens)


def a_star_completion(lp, ref, a, beta):
    return (beta * math.fsum(n - r for n, r in zip(lp, ref, strict=True)) - a) ** 2


def optimal_value(rewards, beta):
    return beta * math.log(mean([math.exp(r / beta) for r in rewards if r is not None]))


def dpo_pair(chosen, rejected, beta, smoothing=0.0):
    p = 1 / (1 + math.exp(-beta * (chosen - rejected)))
    return -(1 - smoothing) * math.log(p) - smoothing * math.log(1 - p)


def ipo_pair(chosen, rejected, beta):
    return (chosen - rejected - 1 / (2 * beta)) ** 2


# --- KL of one token -------------------------------------------------------------------------------------------------


def kl(name, lp, ref, old=None):
    r = math.exp(ref) / math.exp(lp)
    if name in ("k1", "k1+"):
        return -math.log(r)
    if name == "k2":
        return math.log(r) ** 2 / 2
    if name == "abs":
        return abs(math.log(r))
    k3 = r - 1 - math.log(r)
    return k3 if name in ("k3", "k3+") else math.exp(lp) / math.exp(old) * k3


def kl_gradient(name, lp, ref, old=None):
    """By lp, as autograd is to see it."""
    if name == "k1":
        return 1.0
    if name == "abs":
        return math.copysign(1.0, lp - ref)
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
    if method == "prompt_mean":  # every two rows are one prompt's
        prompts = [rows[i] + rows[i + 1] if i + 1 < len(rows) else rows[i] for i in range(0, len(rows), 2)]
        return mean([mean(prompt) for prompt in prompts])
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
