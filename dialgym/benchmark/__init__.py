"""Score policies: returns, success, normalised scores, intervals, reports."""

from dialgym.benchmark.evaluate import evaluate
from dialgym.benchmark.policies import Policy
from dialgym.benchmark.result import Episodes, Result
from dialgym.benchmark.rollout import MisfitError, Predictor, episode_seed

__all__ = [
    "Episodes",
    "MisfitError",
    "Policy",
    "Predictor",
    "Result",
    "episode_seed",
    "evaluate",
]
