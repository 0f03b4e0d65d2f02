"""Scores of policies: returns, success, normalised scores, intervals, reports.

| module | what is in it |
|---|---|
| `evaluate` | `evaluate`: one policy on any ids |
| `domains` | `evaluate_domains`: policies that share a dialogue over several domains |
| `result`, `statistics` | `Result`: the episodes, and the figures made of them |
| `comparison` | differences, probabilities of improvement, profiles, pass^k, detectable gaps |
| `run` | `benchmark`: several policies side by side, and games to look at |
| `report`, `plots`, `curves`, `svg` | tables, pictures, learning curves of runs |
| `rules` | `rules_of`: fingerprints of the rules that rows were played by |
| `references` | the registry's reference scores |
"""

from dialgym.benchmark.comparison import (
    mean_difference,
    minimum_detectable_gap,
    pass_hat_k,
    performance_profile,
    probability_of_improvement,
)
from dialgym.benchmark.domains import Scripted, evaluate_domains
from dialgym.benchmark.evaluate import evaluate
from dialgym.benchmark.result import Episodes, Result
from dialgym.benchmark.rules import Fingerprint, rules_of
from dialgym.benchmark.run import Benchmark, benchmark, load_results
from dialgym.rollouts import MisfitError, Policy, Predictor, episode_seed

__all__ = [
    "Benchmark",
    "Episodes",
    "Fingerprint",
    "MisfitError",
    "Policy",
    "Predictor",
    "Result",
    "Scripted",
    "benchmark",
    "episode_seed",
    "evaluate",
    "evaluate_domains",
    "load_results",
    "mean_difference",
    "minimum_detectable_gap",
    "pass_hat_k",
    "performance_profile",
    "probability_of_improvement",
    "rules_of",
]
