"""Dialogues that two learners share: each sees its own side as an env of Stable-Baselines3."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from stable_baselines3.common.vec_env import VecEnv

from dialgym.views.two_party import TokenTwoPartyEnv

OVER = -1


class PairedDialogues:
    """Rows of two-party dialogues, and what each party has earned in them.

    Args:
        games: a dialogue each.

    Attributes:
        floor: (n,) int, the place in `parties` of who has the floor, or `OVER`.
        rewards: by party, for each of its steps an array (n,) of what its token in a row earned
            until its next one.
        returns: by party (n,), of all that it was given, before its first token too.
    """

    def __init__(self, games: Sequence[TokenTwoPartyEnv]) -> None:
        self.games = list(games)
        self.parties: tuple[str, ...] = tuple(self.games[0].possible_agents)
        self._speaker = self.parties[0]
        self.floor = np.full(len(self.games), OVER)
        self.seen: dict[str, list[Any]] = {
            party: [None] * len(self.games) for party in self.parties
        }

    def begin(self, seeds: Sequence[int | None]) -> None:
        """Begin all of them."""
        rows = len(self.games)
        self.rewards: dict[str, list[np.ndarray]] = {party: [] for party in self.parties}
        self.returns = {party: np.zeros(rows) for party in self.parties}
        self._last = {party: np.full(rows, -1) for party in self.parties}  # step of its last token
        for row, (game, seed) in enumerate(zip(self.games, seeds, strict=True)):
            game.reset(seed=seed)
            self._look(row, self.parties)

    def holds(self, party: str) -> np.ndarray:
        """(n,) bool, where a party has the floor."""
        return self.floor == self.parties.index(party)

    def speaking(self) -> str | None:
        """The party that says the next token; None when all dialogues are over.

        Who has the floor anywhere goes on until all its utterances have ended.
        """
        if not self.holds(self._speaker).any():
            others = [party for party in self.parties if self.holds(party).any()]
            if not others:
                return None
            self._speaker = others[0]
        return self._speaker

    def say(self, party: str, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Let a party say a token wherever it has the floor.

        Args:
            party: who speaks.
            actions: (n,) tokens; those of other rows are not looked at.

        Returns:
            What the party was given for it (n,) float32, and which dialogues ended with it (n,).
        """
        rows, step = np.flatnonzero(self.holds(party)), len(self.rewards[party])
        self.rewards[party].append(np.zeros(len(self.games), np.float32))
        self._last[party][rows] = step
        for row in rows.tolist():
            game = self.games[row]
            game.step(int(actions[row]))
            for name in self.parties:
                self._earn(name, row, game.rewards[name])
            ended = bool(game.infos[party]["turn"])  # the utterance, which the other has heard
            self._look(row, self.parties if ended else (party,))
        dones = np.zeros(len(self.games), bool)
        dones[rows] = self.floor[rows] == OVER
        return self.rewards[party][step].copy(), dones

    def _earn(self, party: str, row: int, reward: float) -> None:
        self.returns[party][row] += reward
        step = self._last[party][row]
        if step >= 0:  # else there is nothing that it could be for
            self.rewards[party][step][row] += reward

    def _look(self, row: int, parties: Sequence[str]) -> None:
        """See what has changed in a row, for whom it can have."""
        game = self.games[row]
        for party in parties:
            self.seen[party][row] = game.observe(party)
        over = any(game.terminations.values()) or any(game.truncations.values())
        self.floor[row] = OVER if over else self.parties.index(game.agent_selection)


class SelfPlayEnv(VecEnv):
    """One party's side of shared dialogues, as the env of its learner.

    A step says a token in those rows alone in which the party has the floor. `SelfPlay` lets the
    other party speak between steps.
    """

    def __init__(self, dialogues: PairedDialogues, party: str) -> None:
        self.dialogues, self.party, self.render_mode = dialogues, party, None
        game = dialogues.games[0]
        spaces = game.observation_space(party), game.action_space(party)
        super().__init__(len(dialogues.games), *spaces)

    def observe(self) -> Any:
        """The party's observations now, (n, L), or a dict of such arrays."""
        seen = self.dialogues.seen[self.party]
        if isinstance(seen[0], dict):
            return {key: np.stack([row[key] for row in seen]) for key in seen[0]}
        return np.stack(seen)

    def reset(self) -> Any:
        """Begin all dialogues, for both sides."""
        self.dialogues.begin(self._seeds)
        self._reset_seeds()
        self._reset_options()
        return self.observe()

    def step_async(self, actions: np.ndarray) -> None:
        """Set the step going."""
        self._result = self.dialogues.say(self.party, actions)

    def step_wait(self) -> Any:
        """Observations, rewards, dones, and infos, which are empty."""
        rewards, dones = self._result
        return self.observe(), rewards, dones, [{} for _ in range(self.num_envs)]

    def env_method(
        self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any
    ) -> list[Any]:
        """``action_masks`` of rows in which the party has the floor; there is no other method.

        Raises:
            AttributeError: any other method.
        """
        if method_name != "action_masks":
            raise AttributeError(f"a side of two-party dialogues has no method {method_name!r}")
        return [self.dialogues.games[row].action_masks() for row in self._get_indices(indices)]

    def has_attr(self, attr_name: str) -> bool:
        """Return True if `get_attr` or `env_method` knows the name."""
        return attr_name == "action_masks" or hasattr(self.dialogues.games[0], attr_name)

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """An attribute of each dialogue asked for."""
        games = self.dialogues.games
        return [getattr(games[row], attr_name) for row in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Set an attribute of each dialogue asked for."""
        for row in self._get_indices(indices):
            setattr(self.dialogues.games[row], attr_name, value)

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        """No row is wrapped."""
        return [False] * len(list(self._get_indices(indices)))

    def close(self) -> None:
        """Nothing is held open."""
