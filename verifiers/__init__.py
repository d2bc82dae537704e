"""Deterministic, rule-based rewards: maths, code, format, language and verifiers of your own. Needs no torch.

>>> from verifiers import Completion, Problem, resolve
>>> resolve("math")(Problem(answer="1/2"), Completion(r"so the answer is \\boxed{0.5}")).score
1.0
"""

from verifiers.core import Completion, GoldError, Problem, Verdict, Verifier, VerifierError
from verifiers.registry import VERIFIERS, check_gold, resolve, verifier
from verifiers.reward import Reward, Score
from verifiers.scoring import score_many

DISTRIBUTION = "r1lite"  # another distribution on PyPI has this import name; r1lite recognises ours by this constant

__all__ = [
    "DISTRIBUTION",
    "VERIFIERS",
    "Completion",
    "GoldError",
    "Problem",
    "Reward",
    "Score",
    "Verdict",
    "Verifier",
    "VerifierError",
    "check_gold",
    "resolve",
    "score_many",
    "verifier",
]
