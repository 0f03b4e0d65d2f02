"""`ActAgent`: a saved agent that chooses acts, in the place of either party of any view."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gymnasium import spaces

from agents.policies.belief import BeliefPolicy
from agents.storage.models import load
from dialgym.io.saved_models import find_checkpoint
from dialgym.rollouts.episodes import seeded
from dialgym.rollouts.policies import (
    AllowedOnly,
    learns_by_sampling,
    observation_adapter,
    takes_masks,
)
from dialgym.views.spaces import maskable
from dialgym.views.wrappers import replacement

Generators = Sequence[np.random.Generator]
LARGEST_SEED = 2**31


class ActChooser:
    """A speaker and an act policy that chooses for many dialogues at once."""

    def act(self, task: Any, state: Any, rng: np.random.Generator) -> Any:
        """See `dialgym.tasks.ActPolicy`."""
        return self.act_many(task, [state], [rng])[0]

    def reply(self, task: Any, state: Any, rng: np.random.Generator) -> str:
        """See `dialgym.simulators.Speaker`."""
        return self.reply_many(task, [state], [rng])[0]

    def reply_many(self, task: Any, states: Sequence[Any], rngs: Generators) -> list[str]:
        """See `dialgym.simulators.BatchSpeaker`."""
        chosen = self.act_many(task, states, rngs)
        return [
            task.acts[task.speaker(state)].say(state, action, rng)
            for state, action, rng in zip(states, chosen, rngs)
        ]

    def act_many(self, task: Any, states: Sequence[Any], rngs: Generators) -> list[Any]:
        """The actions of one party, which has the floor in all `states`."""
        raise NotImplementedError


class ActAgent(ActChooser):
    """A model over beliefs and acts as a speaker and as an act policy, of one dialogue or many.

    ``gym.make(id, simulator="runs/user")`` lets a learned user play,
    `dialgym.evaluate(ActAgent(model), id)` scores it. It chooses within the masks of its party;
    numbers are drawn from the dialogue's generator.

    Args:
        model: a learner over beliefs, ours or of Stable-Baselines3, its zip file, or the folder of
            its run. Of what has learned both parties (`MADPL`), the policy of whoever has the
            floor.
        deterministic: it chooses the likeliest acts, else draws. None draws where it has learned so
            and from an `agents.BeliefPolicy`, else takes the best by value.
        trust: read a pickled model, which can run code; see `agents.load`.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the model does not choose acts by beliefs, or keeps a state between them.
    """

    def __init__(self, model: Any, deterministic: bool | None = None, trust: bool = False) -> None:
        if isinstance(model, str | Path):
            model = load(find_checkpoint(model) or model, device="cpu", trust=trust)
        policies = getattr(model, "policies", None)
        choosers = [_chooser(policy) for policy in policies] if policies else [_chooser(model)]
        self.choosers = dict(zip(getattr(model, "parties", (None,)), choosers))
        self.deterministic = deterministic

    def act_many(self, task: Any, states: Sequence[Any], rngs: Generators) -> list[Any]:
        found = [states[k] for k in range(len(rngs))]
        chooser, beliefs, allowed = self._before(task, found)
        best = chooser.best if self.deterministic is None else self.deterministic
        chosen = chooser.choose(beliefs, allowed, best, rngs)
        multiple = task.acts[task.speaker(found[0])].multiple
        return list(chosen.astype(np.int8)) if multiple else chosen.tolist()

    def probabilities(self, task: Any, states: Sequence[Any]) -> np.ndarray:
        """(k, A) float64: of each act, where one is chosen, of the party that has the floor in all.

        Raises:
            ValueError: the model has no distribution over single acts.
        """
        chooser, beliefs, allowed = self._before(task, states)
        if not isinstance(chooser, _ByDistribution) or chooser.several:
            raise ValueError(
                "ActAgent: expected a model with agents.BeliefPolicy that chooses one act at a "
                "time, as probabilities are asked for; clone one with agents.BC"
            )
        return chooser.probabilities(beliefs, allowed)

    def _before(
        self, task: Any, states: Sequence[Any]
    ) -> tuple[_ByDistribution | _ByPredict, np.ndarray, np.ndarray]:
        """Chooser of the party, what it sees, and what is allowed."""
        party = task.speaker(states[0])
        chooser, acts = self.choosers.get(party) or self.choosers[None], task.acts[party]
        beliefs = acts.observe_many(states)
        if beliefs.shape[1:] != chooser.observation_space.shape:
            raise ValueError(
                f"ActAgent: expected beliefs of shape {chooser.observation_space.shape}, as it "
                f"learned with, got {beliefs.shape[1:]} of the {party} of {task.name}"
            )
        return chooser, beliefs, acts.mask_many(states)


def _chooser(model: Any) -> _ByDistribution | _ByPredict:
    """Chooser of the acts of a model, or of one of its policies.

    Raises:
        ValueError: it does not choose acts by beliefs.
    """
    policy = getattr(model, "policy", model)
    if isinstance(policy, BeliefPolicy):
        return _ByDistribution(policy)
    seen = getattr(model, "observation_space", None)
    if not isinstance(seen, spaces.Box) or hasattr(seen, "tokenizer"):
        raise ValueError(
            "ActAgent: expected a model of beliefs and acts, which act views are learned with, got "
            f"{type(policy).__name__}; ChatAgent speaks in words"
        )
    if hasattr(policy, "lstm_actor"):
        raise ValueError(
            f"ActAgent: {type(policy).__name__} keeps a state between acts, which a speaker is not "
            "given; `dialgym evaluate` plays it as the learner"
        )
    return _ByPredict(model)


class _ByDistribution:
    """Acts by the distribution of a policy, drawn with the dialogues' own generators."""

    best = False

    def __init__(self, policy: BeliefPolicy) -> None:
        policy.set_training_mode(False)
        self.policy = policy
        self.observation_space, self.action_space = policy.observation_space, policy.action_space
        self.several = isinstance(policy.action_space, spaces.MultiBinary)

    def _distribution(self, beliefs: np.ndarray, allowed: np.ndarray) -> Any:
        masks = maskable(allowed, self.action_space)
        seen, _ = self.policy.obs_to_tensor(beliefs)
        return self.policy.get_distribution(seen, masks)  # type: ignore[arg-type]

    @torch.no_grad()
    def probabilities(self, beliefs: np.ndarray, allowed: np.ndarray) -> np.ndarray:
        """(n, A) float64: of each act, for beliefs (n, B), among those `allowed` (n, A)."""
        found = self._distribution(beliefs, allowed).distribution.probs
        probabilities: np.ndarray = found.double().cpu().numpy()
        return probabilities

    @torch.no_grad()
    def choose(
        self, beliefs: np.ndarray, allowed: np.ndarray, best: bool, rngs: Generators
    ) -> np.ndarray:
        """Actions (n,) or (n, A) for beliefs (n, B), among those `allowed` (n, A)."""
        distribution = self._distribution(beliefs, allowed)
        if best:
            modes: np.ndarray = distribution.mode().cpu().numpy()
            return modes
        if self.several:
            rates = torch.sigmoid(distribution.logits).cpu().numpy()
            return np.stack([rng.random(len(p)) < p for rng, p in zip(rngs, rates)])
        rates = distribution.distribution.probs.double().cumsum(-1).cpu().numpy()
        return np.array([_drawn(p, rng) for rng, p in zip(rngs, rates)])


class _ByPredict:
    """Acts by `predict`, seeded from the dialogues' generators where it draws."""

    def __init__(self, model: Any) -> None:
        self.model = AllowedOnly(model) if getattr(model, "replace_forbidden", None) else model
        self.observation_space, self.action_space = model.observation_space, model.action_space
        self.best = not learns_by_sampling(model)
        self.adapt = observation_adapter(model)

    def choose(
        self, beliefs: np.ndarray, allowed: np.ndarray, best: bool, rngs: Generators
    ) -> np.ndarray:
        """Actions (n,) or (n, A) for beliefs (n, B), among those `allowed` (n, A).

        A forbidden one, which a model without masks may choose, gives way to an allowed one at
        random, or among several is left out.
        """
        masks = maskable(allowed, self.action_space) if takes_masks(self.model) else None
        chosen = np.concatenate(
            [
                self._predict(beliefs[rows], None if masks is None else masks[rows], best, rng)
                for rows, rng in self._groups(best, rngs)
            ]
        )
        if chosen.ndim > 1:
            return chosen.astype(bool) & allowed.astype(bool)
        for row, rng in enumerate(rngs):
            if not allowed[row, chosen[row]]:
                chosen[row] = replacement(allowed[row], int(chosen[row]), "random", rng)
        return chosen

    def _groups(self, best: bool, rngs: Generators) -> list[tuple[slice, Any]]:
        """Rows that are asked for at once: all of them, or each with its own numbers."""
        if best:
            return [(slice(None), None)]
        return [(slice(row, row + 1), rng) for row, rng in enumerate(rngs)]

    def _predict(
        self, beliefs: np.ndarray, masks: np.ndarray | None, best: bool, rng: Any
    ) -> np.ndarray:
        given = {} if masks is None else {"action_masks": masks}
        seed = 0 if rng is None else int(rng.integers(LARGEST_SEED))
        with seeded(self.model, seed):
            chosen: np.ndarray = self.model.predict(
                self.adapt(beliefs), deterministic=best, **given
            )[0]
        return chosen


def _drawn(cumulated: np.ndarray, rng: np.random.Generator) -> int:
    """An index, drawn by cumulated probabilities (A,)."""
    return int(np.searchsorted(cumulated, rng.random() * cumulated[-1], side="right"))
