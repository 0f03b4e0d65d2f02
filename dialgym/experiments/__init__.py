"""Experiments: policies in environments with seeds, as scores, rows, tables and pages.

| module | what is in it |
|---|---|
| `evaluate`, `result` | `evaluate`: one policy on any ids; `Result`: its episodes and figures |
| `benchmark`, `samples` | `benchmark`: several policies side by side; sample dialogues |
| `analysis`, `analysis_page` | `analyze`: success by domain, misheard acts, loops, failures |
| `multi_domain` | `evaluate_domains`: policies that share a dialogue over several domains |
| `statistics` | means, intervals, differences, probabilities of improvement |
| `panel` | `Panel`: environments, learners, budgets and the evaluation, read strictly |
| `protocol`, `measures` | how a policy is scored for a panel's row, and how a row is replayed |
| `row`, `row_files`, `row_checks` | `ExperimentRow`: a row, its files, its checks |
| `rules` | `rules_of`: fingerprints of the rules that rows were played by |
| `ranking`, `pydial_ranking` | ranks with ties of a panel's rows |
| `tables`, `panel_tables`, `measure_tables` | tables for Markdown and the terminal; costs |
| `pages`, `svg`, `plots`, `curves` | pages, drawings, pictures, learning curves |
| `advantages` | true advantages of turns by repeated continuation |
| `user_audit`, `user_audit_page` | `audit_user`: a simulated user beside a rule user |
| `user_faults`, `user_dialogues` | faults of users in transcripts, and the dialogues they are of |
| `judge_check`, `judge_figures` | `check_judge`: a judge of dialogues beside the rules |
| `references` | the registry's reference scores |
"""

from dialgym.experiments.analysis import Analysis, analyze
from dialgym.experiments.benchmark import Benchmark, benchmark, load_results
from dialgym.experiments.bootstrap import mean_difference
from dialgym.experiments.evaluate import EvaluateOptions, evaluate
from dialgym.experiments.judge_check import JudgeCheck, check_judge
from dialgym.experiments.multi_domain import Scripted, evaluate_domains
from dialgym.experiments.result import Episodes, Result
from dialgym.experiments.rules import Fingerprint, rules_of
from dialgym.experiments.significance import probability_of_improvement
from dialgym.experiments.statistics import (
    Estimate,
    format_estimate,
    minimum_detectable_gap,
    pass_hat_k,
    performance_profile,
)
from dialgym.experiments.user_audit import UserAudit, audit_user
from dialgym.rollouts import IncompatiblePolicyError, Policy, Predictor, episode_seed

__all__ = [
    "Analysis",
    "Benchmark",
    "Episodes",
    "Estimate",
    "EvaluateOptions",
    "Fingerprint",
    "IncompatiblePolicyError",
    "JudgeCheck",
    "Policy",
    "Predictor",
    "Result",
    "Scripted",
    "UserAudit",
    "analyze",
    "audit_user",
    "benchmark",
    "check_judge",
    "episode_seed",
    "evaluate",
    "evaluate_domains",
    "format_estimate",
    "load_results",
    "mean_difference",
    "minimum_detectable_gap",
    "pass_hat_k",
    "performance_profile",
    "probability_of_improvement",
    "rules_of",
]
