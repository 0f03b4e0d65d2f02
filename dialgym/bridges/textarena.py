"""Door in for TextArena 0.7's games of one player: ``textarena:ID``."""

import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import Lock
from typing import Any

from dialgym.bridges.foreign import ForeignTask, sample_quoted
from dialgym.errors import unknown
from dialgym.optional import require
from dialgym.testing.sessions import Answer, TextEnvironment, TextSession

EXTRA, PURPOSE = "textarena", "a game of TextArena"
_lock = Lock()  # of the process's generator


class TextArenaSession:
    """A session of a game with one player.

    The game draws from the generator of the process, as TextArena's games do, and its reset seeds
    that. What it pays comes at the end.

    Args:
        game_id: of TextArena's registry.
    """

    def __init__(self, game_id: str) -> None:
        self._id = game_id
        self._game = require("textarena", EXTRA, PURPOSE).make(game_id)

    def reset(self, seed: int, options: Mapping[str, Any] | None = None) -> Answer:
        """Begin a game.

        Raises:
            ValueError: it is not for one player, or options are given.
        """
        if options:
            raise ValueError(f"textarena:{self._id}: expected no options; got {dict(options)!r}.")
        try:
            self._game.reset(num_players=1, seed=seed)
        except AssertionError as error:
            raise ValueError(
                f"textarena:{self._id} cannot be played by one: {error}. Games of one player are "
                "those whose reset takes num_players=1."
            ) from error
        return Answer(self._observed())

    def step(self, text: str) -> Answer:
        """Make a move."""
        done, info = self._game.step(text)
        seen = self._observed()
        if not done:
            return Answer(seen, 0.0, info=info)
        rewards, about = self._game.close()
        told = str(about[0].get("reason", ""))
        text = seen if told in seen else f"{seen}\n{told}"
        return Answer(text, (rewards or {}).get(0, 0.0), True, info={**info, **about[0]})

    def close(self) -> None:
        """End the session; a game holds nothing."""

    def _observed(self) -> str:
        """Observation of the player: text of a wrapped game, the messages of a raw one."""
        _, seen = self._game.get_observation()
        if isinstance(seen, str):
            return seen
        return "\n".join(str(message[1]) for message in seen)


class SeededSession(TextArenaSession):
    """A session whose draws are its own: the process's generator is lent to it, and given back.

    Args:
        game_id: of TextArena's registry.
    """

    def __init__(self, game_id: str) -> None:
        super().__init__(game_id)
        self._generator: Any = None

    def reset(self, seed: int, options: Mapping[str, Any] | None = None) -> Answer:
        """Begin a game, whose draws follow from the seed from its first one on."""
        self._generator = random.Random(seed).getstate()
        with self._drawing():
            return super().reset(seed, options)

    def step(self, text: str) -> Answer:
        """Make a move."""
        with self._drawing():
            return super().step(text)

    @contextmanager
    def _drawing(self) -> Iterator[None]:
        with _lock:
            others = random.getstate()
            random.setstate(self._generator)
            try:
                yield
            finally:
                self._generator = random.getstate()
                random.setstate(others)


class TextArenaTask(ForeignTask):
    """Dialogues with a game of TextArena."""

    scheme = "textarena"

    def find(self) -> TextEnvironment:
        """The game of an id."""
        known = require("textarena.envs.registration", EXTRA, PURPOSE).ENV_REGISTRY
        if self.address not in known:
            raise unknown("game", self.address, known, "TextArena")
        return TextEnvironment(self.name, self._opened, sample_quoted)

    def open_session(self) -> TextSession:
        """A session to play in, which other sessions and the process do not change."""
        return SeededSession(self.address)

    def _opened(self) -> TextSession:
        return TextArenaSession(self.address)
