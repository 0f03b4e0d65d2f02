"""A saved learner's value estimates of the learner's turns in stored dialogues."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from agents.learner import Learner
from agents.offline.ilql import ValueAlgorithm
from agents.offline.rank_accuracy import decisions
from agents.policies.gpt import GPTActorCritic
from agents.storage.models import load
from dialgym.datasets import Dataset, TokenData
from dialgym.io.saved_models import find_checkpoint

Turns = dict[int, dict[str, float]]


def turn_values(run: str | Path, trust: bool = False) -> Callable[[Dataset], Turns]:
    """A function from a dataset of one dialogue to value estimates of its turns by a run's model.

    By the place of the turn: `value`, V before its first token; of `ILQL` and its kin `advantage`
    too, the sum of Q - V over its tokens.

    Args:
        run: its folder, or a saved model.
        trust: read a pickled model, which can run code; see `agents.load`.

    Raises:
        FileNotFoundError: there is no model.
        ValueError: the model has no values of single tokens, or none that it was taught.
    """
    file = find_checkpoint(run)
    if file is None:
        raise FileNotFoundError(
            f"values: expected a run with a model, or a saved model, at {str(run)!r}; there is "
            "none. Check the path."
        )
    model = load(file, device="cpu", trust=trust)
    if isinstance(model, ValueAlgorithm) and model.estimates_tokens:
        return lambda one: _of_values(model, one)
    taught = not isinstance(model, Learner) or model.learns_state_values  # all others' do
    if isinstance(model.policy, GPTActorCritic) and taught:
        return lambda one: _of_critic(model.policy, one)
    raise ValueError(
        "values: expected a learner that has values of token views (PPO with a GPT policy, ILQL "
        f"and its kin); got {type(model).__name__}"
    )


def _of_values(model: Any, one: Dataset) -> Turns:
    found = decisions(model, one)
    result = {}
    for number, place in enumerate(_places(one)):
        tokens = found.utterance == number
        if tokens.any():
            advantage = float(found.advantage[tokens].sum())
            result[place] = {"value": float(found.v[tokens][0]), "advantage": advantage}
    return result


@torch.no_grad()
def _of_critic(policy: GPTActorCritic, one: Dataset) -> Turns:
    data = one.tokens()
    starts = _starts(data)
    rows = np.zeros((len(starts), data.window), np.int32)
    for row, start in enumerate(starts):
        rows[row, :start] = data.tokens[:start]
    policy.set_training_mode(False)
    values = policy.predict_values(torch.as_tensor(rows)).flatten().tolist()
    return {place: {"value": value} for place, value in zip(_places(one), values)}


def _places(one: Dataset) -> list[int]:
    """Positions of the learner's utterances in the dialogue."""
    return [place for place, turn in enumerate(one[0]["turns"]) if turn["said"]]


def _starts(data: TokenData) -> np.ndarray:
    """(k,) where the learner's utterances begin among the tokens of a dialogue."""
    before = np.concatenate([[False], data.is_action[:-1]])
    return np.flatnonzero(data.is_action & ~before)
