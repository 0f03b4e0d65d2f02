"""NeMo-Gym's door: a server of dialogues for its ``gymnasium_agent``.

A row of its JSONL has the messages before the first turn as the input of the model, and beside it
the seed, so rollouts of a row begin alike. The server lies in NeMo-Gym's folder of resources
servers, as the module that its configuration names::

    from dialgym.bridges import nemo_gym

    Dialogues = nemo_gym.server()
    if __name__ == "__main__":
        Dialogues.run_webserver()
"""

import asyncio
import json
from collections.abc import Iterable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from gymnasium.error import ResetNeeded

from dialgym.bridges.rows import begin, chat_of, rows_of
from dialgym.io.files import write_text
from dialgym.optional import require
from dialgym.registry import Environment
from dialgym.views.chat import Chat, ChatReply

BASE, PURPOSE = "resources_servers.gymnasium", "a server of NeMo-Gym"
AGENT = "dialgym_agent"
"""Name of the agent in the configuration that plays rows, unless told otherwise."""


def rows(
    id_or_task: Environment, count: int, seed: int = 0, agent: str = AGENT, **settings: Any
) -> list[dict[str, Any]]:
    """Rows of training data: dialogues by their seeds, `seed` and on.

    Args:
        id_or_task, settings: as of `dialgym.Chat`; settings must be plain values.
        count: rows.
        agent: the ``gymnasium_agent`` of the configuration that plays them, by name.

    Returns:
        For each ``responses_create_params`` with the opening as its ``input``, ``agent_ref``, and
        beside them what the server reads of `dialgym.bridges.rows.rows_of`.
    """
    ref = {"type": "responses_api_agents", "name": agent}
    made = rows_of(id_or_task, count, seed, **settings)
    return [
        {"responses_create_params": {"input": row.pop("prompt")}, "agent_ref": ref, **row}
        for row in made
    ]


def write_rows(rows: Iterable[Mapping[str, Any]], path: str | PathLike[str]) -> None:
    """Write rows as the lines of a JSONL file."""
    write_text(Path(path), "".join([f"{json.dumps(row)}\n" for row in rows]))


def server() -> Any:
    """The class of a server in the form of NeMo-Gym's ``GymnasiumServer``.

    Raises:
        ImportError: NeMo-Gym is missing.
    """
    base = require(BASE, None, PURPOSE)

    class NeMoGymDialogues(base.GymnasiumServer):  # type: ignore[name-defined, misc]
        async def reset(self, metadata: dict, session_id: str | None = None) -> tuple[None, dict]:
            turns = SessionTurns(chat_of(metadata))
            await asyncio.to_thread(begin, turns.chat, metadata)
            self.session_state[session_id] = turns
            return None, {}  # the opening is the row's input already

        async def step(self, action: Any, metadata: dict, session_id: str | None = None) -> Any:
            turns = self.session_state.get(session_id)
            if turns is None:
                raise ResetNeeded(f"session {session_id!r} has no dialogue. Call /reset first.")
            return await asyncio.to_thread(turns.say, base.extract_text(action))

    return NeMoGymDialogues


class SessionTurns:
    """Turns of a session, all of which the last answer tells: the agent keeps no other.

    Args:
        chat: its dialogue.
    """

    def __init__(self, chat: Chat) -> None:
        self.chat, self._replies = chat, list[ChatReply]()

    def say(self, text: str) -> tuple[str | None, float, bool, bool, dict[str, Any]]:
        """Say a text.

        Returns:
            What is heard, None after the end; reward; terminated; truncated; and the ``utterance``
            that the rules have heard, ``is_success``, ``closing`` words, and of all turns so far
            ``turn_rewards`` and ``turn_components``.

        Raises:
            ResetNeeded: the dialogue is over.
        """
        reply = self.chat.step(text)
        self._replies.append(reply)
        told = {name: reply.info[name] for name in ("utterance", "is_success")}
        told["closing"] = reply.text if reply.over else ""
        told["turn_rewards"] = [each.reward for each in self._replies]
        told["turn_components"] = [dict(each.components) for each in self._replies]
        heard = None if reply.over else reply.text
        return heard, reply.reward, reply.terminated, reply.truncated, told
