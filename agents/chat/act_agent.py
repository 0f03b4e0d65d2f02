"""`ActAgent`: a saved agent that chooses acts, in the place of either party of any view."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from agents.models.bernoulli import MaskedBernoulli
from agents.policies.belief import BeliefPolicy
from agents.storage.models import load
from dialgym.rollouts.policies import find_checkpoint
from dialgym.views.spaces import maskable

Generators = Sequence[np.random.Generator]


class ActAgent:
    """A model over beliefs and acts as a speaker and as an act policy, of one dialogue or many.

    ``gym.make(id, simulator={"name": "agents:ActAgent", "model": "runs/user"})`` lets a learned
    user play, `dialgym.evaluate(ActAgent(model), id)` scores it. It chooses within the masks of its
    party; numbers are drawn from the dialogue's generator.

    Args:
        model: a learner with a policy over beliefs, its zip file, or the folder of its run. Of what
            has learned both parties (`MADPL`), the policy of whoever has the floor.
        deterministic: it chooses the likeliest acts, else draws.
        trust: read a pickled model, which can run code; see `agents.load`.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the model's policy is not one over beliefs.
    """

    def __init__(self, model: Any, deterministic: bool = False, trust: bool = False) -> None:
        if isinstance(model, str | Path):
            model = load(find_checkpoint(model) or model, device="cpu", trust=trust)
        parties = getattr(model, "parties", (None,))
        policies: Any = getattr(model, "policies", (getattr(model, "policy", None),))
        for policy in policies:
            if not isinstance(policy, BeliefPolicy):
                raise ValueError(
                    "ActAgent: expected a model with agents.BeliefPolicy, which act views are "
                    f"learned with, got {type(policy).__name__}; ChatAgent speaks in words"
                )
            policy.set_training_mode(False)
        self.policies: dict[str | None, BeliefPolicy] = dict(zip(parties, policies))
        self.deterministic = deterministic

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

    @torch.no_grad()
    def act_many(self, task: Any, states: Sequence[Any], rngs: Generators) -> list[Any]:
        """The actions of one party, which has the floor in all `states`."""
        found = [states[k] for k in range(len(rngs))]
        party = task.speaker(found[0])
        policy, acts = self.policies.get(party) or self.policies[None], task.acts[party]
        beliefs = np.stack([acts.observe(state) for state in found])
        if beliefs.shape[1:] != policy.observation_space.shape:
            raise ValueError(
                f"ActAgent: expected beliefs of shape {policy.observation_space.shape}, as it "
                f"learned with, got {beliefs.shape[1:]} of the {party} of {task.name}"
            )
        masks = maskable(np.stack([acts.mask(state) for state in found]), policy.action_space)
        seen, _ = policy.obs_to_tensor(beliefs)
        distribution: Any = policy.get_distribution(seen, masks)  # type: ignore[arg-type]
        if self.deterministic:
            chosen = distribution.mode().cpu().numpy()
        elif isinstance(distribution, MaskedBernoulli):
            rates = torch.sigmoid(distribution.logits).cpu().numpy()
            chosen = np.stack([rng.random(len(p)) < p for rng, p in zip(rngs, rates)])
        else:
            rates = distribution.distribution.probs.double().cumsum(-1).cpu().numpy()
            chosen = np.array([_drawn(p, rng) for rng, p in zip(rngs, rates)])
        return list(chosen.astype(np.int8)) if acts.multiple else chosen.tolist()


def _drawn(cumulated: np.ndarray, rng: np.random.Generator) -> int:
    """An index, drawn by cumulated probabilities (A,)."""
    return int(np.searchsorted(cumulated, rng.random() * cumulated[-1], side="right"))
