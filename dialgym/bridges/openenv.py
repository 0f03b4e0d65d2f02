"""OpenEnv's door: a chat behind its server, a session a dialogue.

The action is ``{"text": ...}``. Observations have ``text``, what was heard, and ``messages``, what
is new in the chat. ``done`` and ``reward`` stand beside them, and in ``metadata`` the reward's
``components``, the ``turn``, ``utterance``, ``is_success``, ``terminated`` and ``truncated``.

Only the WebSocket ``/ws`` keeps a dialogue: OpenEnv makes an environment for each plain HTTP call,
and closes it. Sessions share the rules of the task and nothing that changes; each runs in a thread
of its own, so a simulator that is given as an object must bear several threads.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dialgym.bridges.listed import ListedDialogues
from dialgym.errors import unexpected
from dialgym.optional import require
from dialgym.registry import Environment
from dialgym.versions import VERSION
from dialgym.views.chat import Chat, ChatReply

if TYPE_CHECKING:
    from fastapi import FastAPI

EXTRA, PURPOSE = "openenv", "an OpenEnv server"
TOLD = ("utterance", "turn", "is_success")
ARGUMENTS = ("seed", "options", "split", "index")
"""Arguments of a reset that say which dialogue it is."""


def app(id_or_task: Environment, max_sessions: int = 64, **settings: Any) -> "FastAPI":
    """OpenEnv's application of a task, for uvicorn.

    Args:
        id_or_task, settings: as of `dialgym.Chat`.
        max_sessions: WebSockets at once; a further one is refused.

    Raises:
        ImportError: OpenEnv is missing.
        ValueError: there is no such id or setting.
    """
    server = require("openenv.core.env_server", EXTRA, PURPOSE)
    made = environment(id_or_task, **settings)
    forms, name = (made.action_form, made.observation_form), made().get_metadata().name
    served: FastAPI = server.create_fastapi_app(made, *forms, max_sessions, env_name=name)
    return served


def environment(id_or_task: Environment, **settings: Any) -> Any:
    """OpenEnv's environment class of a task, one object of which is a session.

    Its ``reset`` takes ``seed``, ``options`` of the task, or one of the tasks that it lists, by
    ``split`` and ``index``.

    Raises:
        ImportError: OpenEnv is missing.
        ValueError: there is no such id or setting.
    """
    server = require("openenv.core.env_server", EXTRA, PURPOSE)
    types = require("openenv.core.env_server.types", EXTRA, PURPOSE)
    first = Chat(id_or_task, **settings)

    class Say(types.Action):  # type: ignore[name-defined, misc]
        text: str

    class Heard(types.Observation):  # type: ignore[name-defined, misc]
        text: str
        messages: list[dict[str, str]]

    class OpenEnvDialogue(Sessions, server.Environment):  # type: ignore[name-defined, misc]
        SUPPORTS_CONCURRENT_SESSIONS = True
        action_form, observation_form = Say, Heard

        def __init__(self) -> None:
            Sessions.__init__(self, first.clone(), types)
            self.transform = self.rubric = None  # of OpenEnv's base

    return OpenEnvDialogue


class Sessions(ListedDialogues):
    """OpenEnv's methods of an environment, over a chat.

    Args:
        chat: a new one.
        types: OpenEnv's module of forms.
    """

    observation_form: Any

    def __init__(self, chat: Chat, types: Any) -> None:
        super().__init__(chat.env_id, chat.task)
        self.chat, self._types = chat, types
        self._episode: str | None = None

    def reset(
        self,
        seed: int | None = None,
        episode_id: str | None = None,
        options: Mapping[str, Any] | None = None,
        split: str | None = None,
        index: int | None = None,
        **unknown: Any,
    ) -> Any:
        """Begin a dialogue; a listed one by its split and index alone.

        Raises:
            ValueError: an argument is unknown or impossible, or `split` and `index` are not alone.
            IndexError: there is no such listed dialogue.
        """
        for name in unknown:
            raise unexpected(name, ARGUMENTS, "reset of OpenEnv")
        given = zip(ARGUMENTS, (seed, options, split, index))
        messages = self.chat.reset(*self.beginning(dict(given)))
        self._episode = episode_id
        return self._heard(messages[-1]["content"], messages)

    def step(self, action: Any, timeout_s: float | None = None) -> Any:
        """Say the action's text.

        Raises:
            ResetNeeded: no dialogue is under way.
        """
        known = len(self.chat.messages) + 1  # its own turn is no news
        reply = self.chat.step(action.text)
        return self._heard(reply.text, self.chat.messages[known:], reply)

    def _heard(self, text: str, new: Sequence[Any], reply: ChatReply | None = None) -> Any:
        told = {"text": text, "messages": [dict(message) for message in new]}
        if reply is None:
            return self.observation_form(**told)
        metadata = {name: reply.info[name] for name in TOLD}
        metadata["components"] = dict(reply.components)
        metadata |= {"terminated": reply.terminated, "truncated": reply.truncated}
        return self.observation_form(
            **told, reward=reply.reward, done=reply.over, metadata=metadata
        )

    @property
    def state(self) -> Any:
        """The episode's id and turns; nothing of what is hidden."""
        return self._types.State(episode_id=self._episode, step_count=len(self.chat.said))

    def get_metadata(self) -> Any:
        """Name, rules in words, and version."""
        task = self.chat.task
        name = self.chat.env_id.rpartition("/")[2]
        rules = task.instructions[self.chat.learner]
        return self._types.EnvironmentMetadata(name=name, description=rules, version=VERSION)

    def close(self) -> None:
        """End the session."""
        self.chat.close()
