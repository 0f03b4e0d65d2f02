"""Dialogues in which both parties learn: what each decided, and what came of it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dialgym.tasks import PartyActs
from dialgym.views.two_party import ActTwoPartyEnv


class OwnRewards(NamedTuple):
    """Reward of a choice for the party alone that has made it.

    Attributes:
        coef: weight of what the task says of it, `PartyActs.own_reward`.
        empty_cost: of saying nothing at all.
        share: of what the dialogue gives a party, that is paid to it alone; of the rest both get
            the mean.
    """

    coef: float
    empty_cost: float
    share: float = 0.0

    def of(self, acts: PartyActs, state: Any, action: np.ndarray) -> float:
        """Reward of the party itself for an action in a state."""
        silent = action.ndim > 0 and not action.any()
        return self.coef * acts.own_reward(state, action) - (self.empty_cost if silent else 0.0)


class OpenDialogue:
    """One dialogue of a pair, while it goes on.

    Args:
        pair: both parties.
        parties: the learner and its partner.
        seed: of the dialogue.
    """

    def __init__(self, pair: ActTwoPartyEnv, parties: tuple[str, str], seed: int) -> None:
        self.pair, self.parties = pair, parties
        self.played = Played(), Played()
        self.total, self.size, self.over = 0.0, 0, False
        pair.reset(seed=seed)

    @property
    def floor(self) -> int | None:
        """Party that has the floor, 0 the learner; None once it is over."""
        return None if self.over else self.parties.index(self.pair.agent_selection)

    def choose(self, party: int, decision: tuple[Any, ...], costs: OwnRewards) -> dict[str, Any]:
        """A party has chosen: both beliefs, action, mask, log-probability; the learner's info."""
        pair, action = self.pair, decision[2]
        own = costs.of(pair.task.acts[self.parties[party]], pair.dialogue_state, action)
        pair.step(action)
        self.played[party].add(decision, own)
        rewards = [pair.rewards[name] for name in self.parties]
        for side, mine in zip(self.played, rewards):
            side.gain((1 - costs.share) * sum(rewards) / 2, costs.share * mine)
        self.total += pair.rewards[self.parties[0]]
        self.size += party == 0
        info = dict(pair.infos[self.parties[0]]) if party == 0 else {}
        terminated, truncated = any(pair.terminations.values()), any(pair.truncations.values())
        self.over = terminated or truncated
        if self.over:
            last = tuple(pair.observe(party) for party in self.parties)
            for side in self.played:
                side.end(last, terminated)
            info["is_success"] = bool(pair.infos[self.parties[0]]["is_success"])
            info["episode"] = {"r": self.total, "l": self.size}  # as a monitor has it
        return info


class Played:
    """The decisions of one party in one dialogue, while it goes on."""

    def __init__(self) -> None:
        self.decisions: list[tuple[Any, ...]] = []
        self.rewards: list[list[float]] = []

    def add(self, decision: tuple[Any, ...], own: float) -> None:
        """The party has chosen: both beliefs, action, mask, log-probability; its own reward."""
        self.decisions.append(decision)
        self.rewards.append([own, 0.0])

    def gain(self, reward: float, own: float = 0.0) -> None:
        """Someone has spoken: the party's last choice gets the global and its own reward."""
        if self.rewards:
            self.rewards[-1][0] += own
            self.rewards[-1][1] += reward

    def end(self, last: tuple[np.ndarray, ...], terminated: bool) -> None:
        """End the dialogue, with the last beliefs of both parties."""
        self.last, self.terminated = last, terminated

    def columns(self) -> tuple[np.ndarray, ...]:
        """The columns of `TwoPartyTurns`, the beliefs of both parties apart."""
        count = len(self.decisions)
        seen, partner, actions, masks, log_probs = (np.stack(c) for c in zip(*self.decisions))
        after = [np.concatenate([c[1:], end[None]]) for c, end in zip((seen, partner), self.last)]
        over = np.arange(count) == count - 1
        return (
            seen, partner, *after, actions, masks, log_probs.astype(np.float32),
            np.array(self.rewards, np.float32), over & self.terminated, over,
        )  # fmt: skip
