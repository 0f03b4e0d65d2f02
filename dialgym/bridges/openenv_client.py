"""Door in for OpenEnv's servers: ``openenv:URL``, by one WebSocket a session."""

import json
from collections.abc import Mapping
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

from dialgym.bridges.foreign import ForeignTask, sample_quoted
from dialgym.errors import ServiceError, service_error
from dialgym.optional import require
from dialgym.testing.sessions import Answer, TextEnvironment, TextSession

EXTRA, PURPOSE = "openenv", "a client of OpenEnv"
TEXTS = ("text", "message", "content", "prompt", "observation", "response", "output")
"""Names of the field of an observation that is told; the first that is there and a text."""
SECONDS = 60.0


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
        self._client = client(base_url=url, message_timeout_s=SECONDS).sync()

    def reset(self, seed: int, options: Mapping[str, Any] | None = None) -> Answer:
        """Begin an episode; options are further arguments of the server's reset.

        Raises:
            ServiceError: the server does not answer.
        """
        return self._asked(lambda: self._client.reset(seed=seed, **(options or {})))

    def step(self, text: str) -> Answer:
        """Say a text.

        Raises:
            ServiceError: the server does not answer.
        """
        return self._asked(lambda: self._client.step({self._field: text}))

    def _asked(self, call: Any) -> Answer:
        try:
            result = call()
            state = self._client.state() if self._states else None
        except Exception as error:
            unanswered = service_error("openenv", self, error)
            if unanswered is None and "ConnectionClosed" in type(error).__name__:
                unanswered = ServiceError(f"openenv: {self.url} has closed the session ({error}).")
            if unanswered is None:
                raise
            raise unanswered from error
        observation = result.observation
        told = {**(observation.get("metadata") or {}), **(result.metadata or {})}
        cut = bool(result.done and told.get("truncated"))
        info = {**observation, **told, **({"state": state} if self._states else {})}
        ends = bool(result.done and not cut), cut
        return Answer(_text_of(observation, self.url), result.reward, *ends, info)

    def close(self) -> None:
        """End the session."""
        self._client.close()


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
        ServiceError: the server does not answer.
        ValueError: there is no such field, or there are several.
    """
    if not url.startswith(("http://", "https://")):
        raise ValueError(f"openenv: expected the address of a server, http://...; got {url!r}.")
    try:
        with urlopen(f"{url.rstrip('/')}/schema", timeout=SECONDS) as answer:
            action = json.load(answer)["action"]
    except (URLError, TimeoutError, ConnectionError) as error:
        raise ServiceError(
            f"openenv: no answer from the service at {url} ({error}). Start it, or check its "
            "address."
        ) from error
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"openenv: {url}/schema is no schema of OpenEnv: {error!r}.") from error
    required, fields = action.get("required", []), action.get("properties", {})
    texts = [name for name, about in fields.items() if about.get("type") == "string"]
    fitting = [name for name in required if name in texts] if required else texts
    if len(fitting) == 1 and len(required) <= 1:
        return str(fitting[0])
    raise ValueError(
        f"openenv: actions of {url} have the fields {sorted(fields)}, of which {sorted(required)} "
        "must be given; expected one field for a text."
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
