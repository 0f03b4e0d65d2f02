"""Door in for OpenEnv's servers: ``openenv:URL``, by one WebSocket a session."""

import json
import os
import weakref
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from http.client import HTTPException
from typing import Any
from urllib.request import urlopen

from dialgym.bridges.foreign import ForeignTask, NoRoomError, sample_quoted
from dialgym.errors import ServiceError, service_error
from dialgym.optional import require
from dialgym.testing.sessions import Answer, TextEnvironment, TextSession

EXTRA, PURPOSE = "openenv", "a client of OpenEnv"
TEXTS = ("text", "message", "content", "prompt", "observation", "response", "output")
"""Names of the field of an observation that is told; the first that is there and a text."""
SECONDS = 60.0
_left: deque[tuple[Any, int]] = deque()
"""Clients of forgotten sessions, each with its process, which the next session closes: where a
session is forgotten, any thread may be under way, which must not wait for a server."""


class OpenEnvSession:
    """A session with a server.

    Args:
        url: of the server.
        field: of the action that takes the text.
        states: give what the server shows of its state, as ``info["state"]``.
    """

    def __init__(self, url: str, field: str, states: bool = False) -> None:
        client = require("openenv.core", EXTRA, PURPOSE).GenericEnvClient
        self.url, self._field, self._states = url, field, states
        _close_left()
        self._client = client(base_url=url, message_timeout_s=SECONDS).sync()
        self._forgotten = weakref.finalize(self, _left.append, (self._client, os.getpid()))
        self._forgotten.atexit = False

    def reset(self, seed: int, options: Mapping[str, Any] | None = None) -> Answer:
        """Begin an episode; options are further arguments of the server's reset.

        Raises:
            NoRoomError: the server has as many sessions as it takes.
            ServiceError: it does not answer, or not as OpenEnv does.
        """
        return self._asked(lambda: self._client.reset(seed=seed, **(options or {})))

    def step(self, text: str) -> Answer:
        """Say a text.

        Raises:
            ServiceError: the server does not answer, or not as OpenEnv does.
        """
        return self._asked(lambda: self._client.step({self._field: text}))

    def _asked(self, call: Any) -> Answer:
        try:
            result = call()
            state = self._client.state() if self._states else None
        except Exception as error:
            unanswered = self._unanswered(error)
            if unanswered is None:
                raise
            raise unanswered from error
        observation = self._mapping("an observation", result.observation)
        told = {
            **self._mapping("the observation's metadata", observation.get("metadata") or {}),
            **self._mapping("metadata", result.metadata or {}),
        }
        cut = bool(result.done and told.get("truncated"))
        info = {**observation, **told, **({"state": state} if self._states else {})}
        ends = bool(result.done and not cut), cut
        return Answer(_text_of(observation, self.url), result.reward, *ends, info)

    def _unanswered(self, error: Exception) -> ServiceError | None:
        """The error for a server that gives no answer; None where something else is wrong."""
        if "CAPACITY_REACHED" in str(error):
            return NoRoomError(f"openenv: {self.url} takes no further session ({error}).")
        unanswered = service_error("openenv", self, error)
        if unanswered is None and "ConnectionClosed" in type(error).__name__:
            return ServiceError(f"openenv: {self.url} has closed the session ({error}).")
        if unanswered is None and isinstance(
            error, (ValueError, AttributeError)
        ):  # the client reads before it checks
            return ServiceError(
                f"openenv: {self.url} gave no answer of OpenEnv's protocol ({error}). Check that "
                "its address is that of a server of OpenEnv, and its version."
            )
        return unanswered

    def _mapping(self, what: str, value: Any) -> Mapping[str, Any]:
        return _checked(f"{what} of {self.url}", value, Mapping, "an object")

    def close(self) -> None:
        """End the session."""
        self._forgotten.detach()
        self._client.close()


def _close_left() -> None:
    """Close the clients of sessions that were forgotten in this process."""
    while _left:
        with suppress(Exception):  # another thread had it, or its server is gone
            client, process = _left.popleft()
            if process == os.getpid():  # after a fork, the sockets are another's
                client.close()


class OpenEnvTask(ForeignTask):
    """Dialogues with an environment behind a server of OpenEnv."""

    scheme = "openenv"

    def find(self) -> TextEnvironment:
        """The environment of a server.

        Raises:
            ServiceError: it does not answer.
            ValueError: its action has not exactly one field for a text.
        """
        self._field = text_field(self.address)
        return TextEnvironment(self.name, self._seen_through, sample_quoted)

    def open_session(self) -> TextSession:
        """A session that does not ask for the state."""
        return OpenEnvSession(self.address, self._field)

    def _seen_through(self) -> TextSession:
        return OpenEnvSession(self.address, self._field, states=True)


def text_field(url: str) -> str:
    """The one field of a server's actions that must be given, or that is a text.

    Raises:
        ServiceError: the server does not answer, or with no schema of OpenEnv.
        ValueError: there is no such field, or there are several.
    """
    if not url.startswith(("http://", "https://")):
        raise ValueError(f"openenv: expected the address of a server, http://...; got {url!r}.")
    action = _checked(f"action of {url}/schema", _schema(url).get("action"), Mapping, "an object")
    where = f"of the action of {url}/schema"
    required = _checked(f"required {where}", action.get("required", []), list, "a list")
    fields = _checked(f"properties {where}", action.get("properties", {}), Mapping, "an object")
    for name, about in fields.items():
        _checked(f"property {name!r} {where}", about, Mapping, "an object")
    texts = [name for name, about in fields.items() if about.get("type") == "string"]
    fitting = [name for name in required if name in texts] if required else texts
    if len(fitting) == 1 and len(required) <= 1:
        return str(fitting[0])
    raise ValueError(
        f"openenv: actions of {url} have the fields {sorted(fields)}, of which {required} "
        "must be given; expected one field for a text."
    )


def _schema(url: str) -> Mapping[str, Any]:
    """The forms that a server tells."""
    try:
        with urlopen(f"{url.rstrip('/')}/schema", timeout=SECONDS) as answer:
            content = answer.read()
    except (OSError, HTTPException, ValueError, OverflowError) as error:
        told = " ".join(f"{error}".split()) or type(error).__name__
        raise ServiceError(
            f"openenv: no answer from the service at {url} ({told}). Start it, or check its "
            "address."
        ) from error
    try:
        found = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ServiceError(
            f"openenv: {url}/schema is no schema of OpenEnv: {error!r}. Check that the address is "
            "that of a server of OpenEnv."
        ) from error
    return _checked(f"{url}/schema", found, Mapping, "an object")


def _checked(what: str, value: Any, kind: type, named: str) -> Any:
    """The value, if it is of a kind; else a ServiceError that says what is none."""
    if isinstance(value, kind):
        return value
    raise ServiceError(
        f"openenv: {what}: expected {named}, as OpenEnv's servers give; got "
        f"{json.dumps(value)[:80]}. Check the server, and that the address is its."
    )


def _text_of(observation: Mapping[str, Any], url: str) -> str:
    for name in TEXTS:
        if isinstance(observation.get(name), str):
            return str(observation[name])
    texts = [value for value in observation.values() if isinstance(value, str)]
    if len(texts) == 1:
        return texts[0]
    raise ValueError(
        f"openenv: an observation of {url} has the fields {sorted(observation)}; expected a text "
        f"in one of {', '.join(TEXTS)}."
    )
