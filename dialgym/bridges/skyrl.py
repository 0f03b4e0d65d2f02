"""SkyRL-Gym's door: a chat as one of its text environments.

An environment is made from a row of the training data. Their trainer keeps a row's prompt, and asks
for the opening by ``init``; so the seed stands in the row, and rollouts of a row begin alike.
"""

from collections.abc import Mapping
from typing import Any

from dialgym.bridges.rows import begin, chat_of, rows_of
from dialgym.optional import require
from dialgym.registry import Environment

EXTRA, PURPOSE = "skyrl", "an environment of SkyRL-Gym"
NAME = "dialgym"
"""The id in SkyRL-Gym, for all tasks."""


def register() -> str:
    """Make the environment known to ``skyrl_gym.make``; its id there. A second time does nothing.

    Raises:
        ImportError: SkyRL-Gym is missing.
    """
    gym = require("skyrl_gym", EXTRA, PURPOSE)
    if NAME not in require("skyrl_gym.envs.registration", EXTRA, PURPOSE).registry:
        gym.register(id=NAME, entry_point=f"{__name__}:make")
    return NAME


def rows(id_or_task: Environment, count: int, seed: int = 0, **settings: Any) -> list[dict]:
    """Rows of training data: dialogues by their seeds, `seed` and on.

    Args:
        id_or_task, settings: as of `dialgym.Chat`; settings must be plain values.
        count: rows.

    Returns:
        Those of `dialgym.bridges.rows.rows_of`, with the ``env_class`` that `register` gives.
    """
    return [{**row, "env_class": NAME} for row in rows_of(id_or_task, count, seed, **settings)]


def make(env_config: Any = None, extras: Mapping[str, Any] | None = None) -> Any:
    """A text environment of SkyRL-Gym for a row.

    Args:
        env_config: of their trainer; nothing of it is read.
        extras: the row: ``env_id``, and where wanted ``seed``, ``settings`` and ``options``.

    Raises:
        ImportError: SkyRL-Gym is missing.
        ValueError: the row has no ``env_id``, or there is no such id or setting.
    """
    base = require("skyrl_gym.envs.base_text_env", EXTRA, PURPOSE).BaseTextEnv

    class SkyRLDialogue(Turns, base):  # type: ignore[valid-type, misc]
        def __init__(self) -> None:
            base.__init__(self)
            Turns.__init__(self, extras or {})

    return SkyRLDialogue()


class Turns:
    """SkyRL-Gym's methods of an environment, over a chat.

    Args:
        row: as of `make`.
    """

    def __init__(self, row: Mapping[str, Any]) -> None:
        self._row, self.chat = row, chat_of(row)
        self._success, self._earned = False, 0.0

    def init(self, prompt: Any) -> tuple[list[dict], dict[str, Any]]:
        """The messages before the first turn; those of the prompt are the same and not read."""
        self._success, self._earned = False, 0.0
        return [dict(message) for message in begin(self.chat, self._row)], {}

    def step(self, action: str) -> dict[str, Any]:
        """Say a text. After the end there are no observations, as nobody answers them; closing
        words are the metadata's ``text``.

        Raises:
            ResetNeeded: no dialogue is under way.
        """
        reply = self.chat.step(action)
        self._success, self._earned = reply.info["is_success"], self._earned + reply.reward
        heard = [] if reply.over else [{"role": "user", "content": reply.text}]
        told: dict[str, Any] = {name: reply.info[name] for name in ("utterance", "is_success")}
        told["text"] = reply.text
        told |= {"terminated": reply.terminated, "truncated": reply.truncated}
        told["components"] = dict(reply.components)
        answer = {"observations": heard, "reward": reply.reward, "done": reply.over}
        return {**answer, "metadata": told}

    def get_metrics(self) -> dict[str, Any]:
        """Success and return of the dialogue."""
        return {"success": float(self._success), "return": self._earned}

    def close(self) -> None:
        """Close the chat."""
        self.chat.close()
