"""Learners' advantage estimates of turns, for `dialgym.experiments.advantages`."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any

import gymnasium as gym
import numpy as np
from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper

import dialgym
from agents.offline.ilql import ValueAlgorithm
from agents.offline.rank_accuracy import decisions
from agents.online.grpo import GRPO
from agents.online.on_policy import SequenceAlgorithm
from agents.online.ppo import SequencePPO
from agents.storage.models import load, save
from dialgym.experiments.advantages import Decision
from dialgym.views.saved import SavedDialogue


def turn_estimates(
    model: Any,
    env_id: str,
    dialogues: int = 128,
    seed: int = 0,
    env_kwargs: Mapping[str, Any] | None = None,
    n_steps: int | None = None,
) -> list[Decision]:
    """The turns of fresh dialogues in which a model draws its tokens, and how it credits them.

    - `SequencePPO`, `NLPO`, `GRPO`: the advantages of one rollout, as an update would take them,
      their mean over a turn's tokens.
    - `ILQL` and its kin: the sum of Q - V over a turn's tokens.

    Args:
        model: one of these; it stays as it is.
        env_id: a token view.
        dialogues: how many; of PPO, rows that are played for `n_steps`.
        seed: of the dialogues and of what is drawn.
        env_kwargs: as for ``gym.make``.
        n_steps: the most tokens of a row of a rollout; None takes the model's own.

    Raises:
        ValueError: the model is of another kind.
    """
    kwargs = dict(env_kwargs or {})
    if isinstance(model, SequencePPO | GRPO):
        return _of_a_rollout(model, env_id, dialogues, seed, kwargs, n_steps)
    if isinstance(model, ValueAlgorithm) and model.estimates_tokens:
        return _of_values(model, env_id, dialogues, seed, kwargs)
    raise ValueError(
        "turn_estimates: expected PPO, NLPO or GRPO of this package, or ILQL or one of its kin; "
        f"got {type(model).__name__}"
    )


# Rollouts


def _of_a_rollout(
    model: SequenceAlgorithm,
    env_id: str,
    dialogues: int,
    seed: int,
    kwargs: dict[str, Any],
    n_steps: int | None,
) -> list[Decision]:
    with closing(_Noted(dialgym.sb3_vec_env(env_id, dialogues, seed=seed, **kwargs))) as env:
        other = _copy(model, env)
        other.set_random_seed(seed)
        _, callback = other._setup_learn(1, reset_num_timesteps=False)
        other.collect_rollouts(other.env, callback, other.rollout_buffer, n_steps or other.n_steps)
        return list(_turns(other, env))


def _copy(model: Any, env: VecEnv) -> Any:
    file = io.BytesIO()
    save(model, file)
    file.seek(0)
    return load(file, env=env, device=model.device)


def _turns(model: SequenceAlgorithm, env: _Noted) -> Iterator[Decision]:
    """The turns that begin and end within the rollout."""
    actions, dones = (model.rollout_buffer.steps(name) for name in ("actions", "dones"))
    sequences = model.rollout.sequences
    advantages = sequences.grid(model.rollout.advantages, actions.shape)
    said = np.zeros(actions.shape, bool)
    said.flat[sequences.steps] = True
    episodes = dones.cumsum(0) - dones
    for (step, row), before in env.begun.items():
        end = next((t for t in range(step + 1, len(actions) + 1) if (t, row) in env.begun), None)
        if end is not None and said[step:end, row].all():
            episode = int(row * (len(actions) + 1) + episodes[step, row])
            estimate = float(advantages[step:end, row].mean())
            yield Decision(before, actions[step:end, row], episode, estimate)


class _Noted(VecEnvWrapper):
    """Keeps the dialogues as they stand where a turn begins, by step and row."""

    def __init__(self, venv: VecEnv) -> None:
        super().__init__(venv)
        self.begun: dict[tuple[int, int], SavedDialogue] = {}
        self.now = 0

    def reset(self) -> Any:
        seen = self.venv.reset()
        self.begun, self.now = {}, 0
        self._note(range(self.num_envs))
        return seen

    def step_wait(self) -> Any:
        result = self.venv.step_wait()
        self.now += 1
        _, _, dones, infos = result
        self._note([i for i, info in enumerate(infos) if dones[i] or info.get("turn")])
        return result

    def _note(self, rows: Sequence[int]) -> None:
        batch: Any = self.venv.unwrapped
        saved = batch.env.unwrapped.clone_state(list(rows)) if len(rows) else []
        self.begun |= {(self.now, row): dialogue for row, dialogue in zip(rows, saved)}


# Values


def _of_values(
    model: ValueAlgorithm, env_id: str, dialogues: int, seed: int, kwargs: dict[str, Any]
) -> list[Decision]:
    data = dialgym.collect(
        env_id, model, dialogues, seed=seed, env_kwargs=kwargs, deterministic=False
    )
    found, seeds = decisions(model, data), data["seed"]
    keys = np.stack([found.dialogue, found.utterance])
    starts = np.flatnonzero(np.append(True, (keys[:, 1:] != keys[:, :-1]).any(0)))
    credited = np.add.reduceat(found.advantage, starts)
    turns = zip(found.dialogue[starts], np.split(found.token, starts[1:]), credited)
    result: list[Decision] = []
    with closing(gym.make(env_id, **kwargs).unwrapped) as env:
        for dialogue, tokens, estimate in turns:
            if not result or result[-1].episode != dialogue:
                env.reset(seed=int(seeds[dialogue]))
            before: SavedDialogue = env.clone_state()  # type: ignore[attr-defined]
            result.append(Decision(before, tokens, int(dialogue), float(estimate)))
            for token in tokens:
                env.step(token)
    return result
