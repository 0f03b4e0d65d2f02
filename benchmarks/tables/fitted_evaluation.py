"""Fitted Q evaluation of seven policies of Wordle-20, beside what they earn.

    python -m benchmarks.tables.fitted_evaluation

The dialogues are of LMRL-Gym's mixture: 4,000 for the policies and as many others to evaluate by.
Three policies are clones, of all dialogues, of the best and of the worst; one speaks by values.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from scipy.stats import spearmanr

import agents
import dialgym
from agents.offline.fitted_evaluation import FittedEvaluation
from benchmarks.tables.records import Figures, make_record
from dialgym.experiments.statistics import format_estimate, seed_estimate
from dialgym.experiments.tables import markdown_table

NAME, COMMAND = "fitted_evaluation", "python -m benchmarks.tables.fitted_evaluation"
ENV_ID = "dialgym/Wordle-20-v0"
SETTINGS: Mapping[str, Any] = MappingProxyType({"tokenizer": "word"})
EPISODES, SEEDS, HELD_OUT, PLAYED = 4000, 5, 50_000, 9000
"""Stored dialogues and trainings; the first seeds of the held-out and of the played dialogues."""
CLONES = ("best 30 %", "all", "worst 30 %")
POLICIES = (*CLONES, "ILQL", *(f"{name}, greedy" for name in ("best 30 %", "all", "ILQL")))


def measure_seed(seed: int) -> dict[str, Any]:
    """Fitted values and mean returns of the policies that were trained with a seed."""
    stored, held_out = (_collect(start + EPISODES * seed) for start in (0, HELD_OUT))
    trained = _policies(stored, seed)
    reader = _train(agents.SingleStepRL, stored, seed, 500, returns="monte-carlo", cql_weight=0.0)
    evaluation = FittedEvaluation(reader, held_out)
    fitted, earned = [], []
    for name in POLICIES:
        base, _, greedy = name.partition(", ")
        fitted.append(evaluation.value(trained[base].policy, bool(greedy)).value)
        earned.append(_play(trained[base], bool(greedy)))
    return {"seed": seed, "fitted": fitted, "earned": earned}


def _collect(first_seed: int) -> Any:
    mixture: dict[str, Any] = {"policy_kwargs": {"smart": 0.34}, "env_kwargs": SETTINGS}
    return dialgym.collect(ENV_ID, "random-mixture", EPISODES, seed=first_seed, **mixture)


def _policies(stored: Any, seed: int) -> dict[str, Any]:
    order, count = np.argsort(stored.returns, kind="stable"), int(0.3 * EPISODES)
    return {
        "best 30 %": _train(agents.BC, stored.top(0.3), seed, 300),
        "all": _train(agents.BC, stored, seed, 400),
        "worst 30 %": _train(agents.BC, stored.select(order[:count]), seed, 300),
        "ILQL": _train(agents.ILQL, stored, seed, 500, tau=0.1),
    }


def _train(algorithm: Any, stored: Any, seed: int, steps: int, **settings: Any) -> Any:
    env = dialgym.sb3_vec_env(ENV_ID, 1, seed=seed, **SETTINGS)
    network = {"n_layer": 2, "n_head": 2, "n_embd": 48}
    fixed: dict[str, Any] = {
        "learning_rate": 2e-3,
        "seed": seed,
        "device": "cpu",
        "policy_kwargs": network,
    }
    return algorithm("GPTPolicy", env, stored, **fixed, **settings).learn(steps)


def _play(model: Any, greedy: bool) -> float:
    how: dict[str, Any] = {"deterministic": greedy, "num_envs": 200}
    return float(dialgym.evaluate(model, ENV_ID, 400, [PLAYED], SETTINGS, **how).mean_return)


def measure() -> Figures:
    """Figures of all trainings."""
    return {"policies": [*POLICIES], "trainings": [measure_seed(seed) for seed in range(SEEDS)]}


def table(figures: Figures) -> str:
    """Fitted values and returns of each policy; below, how far their ranks agree."""
    names = figures["policies"]
    fitted, earned = (
        np.array([one[part] for one in figures["trainings"]]) for part in ("fitted", "earned")
    )
    parts = (fitted, earned, fitted - earned)
    rows = [
        [name, *(format_estimate(seed_estimate(part[:, i]), 2) for part in parts)]
        for i, name in enumerate(names)
    ]
    clones = [names.index(name) for name in CLONES]
    drawn = _rank_correlation(fitted[:, clones], earned[:, clones])
    named = int((fitted.argmax(1) == earned.argmax(1)).sum())
    return markdown_table([["policy", "fitted", "earned", "difference"], *rows]) + (
        f"\nMeans of {len(fitted)} trainings, in brackets 95 % intervals (Student's t). Rank "
        f"correlation of fitted and earned: {_rank_correlation(fitted, earned)} of all seven, "
        f"{drawn} of the three clones, drawn. The best of the seven is named in {named} of "
        f"{len(fitted)} trainings.\n"
    )


def _rank_correlation(fitted: np.ndarray, earned: np.ndarray) -> str:
    """Rank correlation of each row of (S, P) values, and its mean with an interval."""
    ranks = [spearmanr(*pair).statistic for pair in zip(fitted, earned, strict=True)]
    return format_estimate(seed_estimate(np.array(ranks), (-1.0, 1.0)), 2)


if __name__ == "__main__":
    print(table(make_record(NAME, COMMAND, measure)), end="")
