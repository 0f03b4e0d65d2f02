"""Score policies: returns, success, normalised scores, intervals, reports."""

from dialgym.benchmark.evaluate import evaluate
from dialgym.benchmark.result import Episodes, Result
from dialgym.benchmark.run import Benchmark, benchmark, load_results
from dialgym.rollouts import MisfitError, Policy, Predictor, episode_seed

__all__ = [
    "Benchmark",
    "Episodes",
    "MisfitError",
    "Policy",
    "Predictor",
    "Result",
    "benchmark",
    "episode_seed",
    "evaluate",
    "load_results",
]
