"""Inference servers that sample tokens: settings, requests, and what is done when one is lost."""

from __future__ import annotations

import json
import math
import time
import urllib.request
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.client import HTTPException, IncompleteRead
from itertools import count
from typing import Any
from urllib.parse import urlsplit

from agents.serving.apis import APIS, HINTS, Request, Sampled
from dialgym.errors import finite_number, one_of, whole_number
from dialgym.io.chat_service import AGAIN, service_key, without_key

LONGEST_PAUSE = 30.0
LARGEST_PART = 2**16
"""Bytes of an answer that are read at a time."""
LONGEST_TEXT = 300
"""Characters of an answer that an error repeats."""


@dataclass(frozen=True)
class RolloutServer:
    """A server that samples a rollout's utterances, and takes the policy's weights from a folder.

    The importance weight of a token, at which its advantage counts, is its probability under the
    policy when the update begins, over that with which it was sampled, truncated (Espeholt et al.
    2018, arXiv 1802.01561, section 4.1): it stands for stale weights and for the server's other
    arithmetic alike.

    Attributes:
        url: the server's address, without a path. Another one that it sends on to is not asked.
        folder: that weights are written into, which server and learner see under this path.
        api: ``vllm`` (``/v1/completions``; weights by ``/collective_rpc``, which wants
            ``VLLM_SERVER_DEV_MODE=1``) or ``sglang`` (``/generate``).
        model: the name by which vLLM is asked, where it serves several; None for the only one.
        max_staleness: updates that the policy may be ahead of the weights by which a token was
            sampled; what is older is not said, and sampled again. That a server was restarted in
            between, with other weights, is seen by what it makes of an utterance of its own, once
            before each rollout; one that scores no prompts, and names no version of its weights,
            is believed.
        max_inflight_tasks: most requests at a time.
        weight_sync_steps: updates from one transfer of the weights to the next.
        importance_cap: the largest importance weight.
        timeout: seconds that a request may take.
        retries, backoff: attempts after the first, and seconds before the second; the pause
            doubles, up to 30. By default the pauses take ten minutes in all, in which a server
            of a large model is restarted.
        api_key_env: the environment variable that has the server's key, if it wants one.

    Raises:
        ValueError: an address, number or name that cannot be, or weights that are sent too seldom
            for `max_staleness`.
    """

    url: str
    folder: str
    api: str = "vllm"
    model: str | None = None
    max_staleness: int = 4
    max_inflight_tasks: int = 64
    weight_sync_steps: int = 1
    importance_cap: float = 2.0
    timeout: float = 120.0
    retries: int = 25
    backoff: float = 0.5
    api_key_env: str = ""

    def __post_init__(self) -> None:
        _check_url(self.url)
        one_of("api", self.api, APIS, "server")
        for name, least in (("max_staleness", 0), ("max_inflight_tasks", 1), ("retries", 0)):
            whole_number(name, getattr(self, name), "server", least)
        whole_number("weight_sync_steps", self.weight_sync_steps, "server", 1)
        for name in ("importance_cap", "timeout", "backoff"):
            if finite_number(f"server: {name}", getattr(self, name)) <= 0:
                raise ValueError(f"server: expected {name} above 0, got {getattr(self, name)}")
        if self.weight_sync_steps > self.max_staleness + 1:
            raise ValueError(
                f"server: weights sent every {self.weight_sync_steps} updates are "
                f"{self.weight_sync_steps - 1} old at last, and max_staleness allows "
                f"{self.max_staleness}; lower weight_sync_steps, or raise max_staleness"
            )


def _check_url(url: Any) -> None:
    if "@" in str(url):
        raise ValueError(
            "server: url has a name or password in it, which would be shown; expected "
            "http://HOST:PORT. Give the key in an environment variable (api_key_env)"
        )
    expected = f"server: expected url as http://HOST:PORT; got {url!r}"
    if not isinstance(url, str) or not url.isascii() or not url.isprintable() or " " in url:
        raise ValueError(expected)
    try:
        parts = urlsplit(url)
        (parts.hostname or "").encode("idna")
        known = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError as error:  # a bracket that is not closed, a port that is no number
        raise ValueError(f"{expected} ({error})") from None
    if not known or parts.query or parts.fragment:
        raise ValueError(expected)


class ServerError(ConnectionError):
    """The server refused a request, or did not answer in all attempts."""


class LostServer(ConnectionError):
    """No answer: the server may have been restarted, so that its weights are unknown."""


class _AsAnswered(urllib.request.HTTPErrorProcessor):
    """Leaves each status to the caller: what is redirected would take the key elsewhere."""

    def http_response(self, request: Any, response: Any) -> Any:
        return response

    https_response = http_response


def _read_until(until: float, response: Any) -> bytes:
    """The body of an answer, read as it comes; TimeoutError where it comes for too long.

    A socket's own timeout begins again with each byte.
    """
    body, length = b"", response.length
    while len(body) != length and (part := response.read1(LARGEST_PART)):
        body += part
        if time.monotonic() > until:
            raise TimeoutError("the answer did not end in time")
    if length and len(body) < length:
        raise IncompleteRead(body, length - len(body))
    return body


class Client:
    """Asks a server; threads may share it.

    Args:
        server: which.
        sleep: waits for seconds.
    """

    def __init__(self, server: RolloutServer, sleep: Callable[[float], Any] = time.sleep) -> None:
        self.server, self.api, self.sleep = server, APIS[server.api], sleep
        self._opener = urllib.request.build_opener(_AsAnswered)

    def sample(self, asked: Request) -> Sampled:
        """Sample once.

        Raises:
            LostServer: no answer in time, none at all, or one that was given up.
            ServerError: it refuses the request, or answers something else.
            ValueError: the key cannot be sent.
        """
        answer = self._post(self.api.path, self._named(self.api.body(asked)))
        try:
            found = self.api.read(answer)
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise self._other(answer, f"{type(error).__name__}: {error}") from None
        if not found.tokens:
            raise LostServer(f"{self.api.path}: nothing was sampled, {self._cut(answer)}")
        if len(found.tokens) > asked.most:
            raise self._other(answer, f"{len(found.tokens)} ids, of {asked.most} at most")
        numbers = [number for number in found.log_probs if math.isfinite(number)]
        if len(numbers) != len(found.tokens):
            raise self._other(answer, f"{len(found.tokens)} ids with {len(numbers)} numbers")
        return found

    def score(self, asked: Request, said: int) -> list[float] | None:
        """Log-probabilities of the last ids of a prompt; None from a server that does not say.

        Args:
            asked: the prompt; one id is sampled after it.
            said: how many ids.

        Raises:
            LostServer: no answer in time, or none at all.
        """
        try:
            answer = self._post(self.api.path, self._named(self.api.score(asked, said)))
            found = self.api.scores(answer, len(asked.prompt))[-said:]
            return [float(value) for value in found] if len(found) == said else None
        except (ServerError, LookupError, TypeError, ValueError, AttributeError):
            return None

    def load(self, folder: str) -> None:
        """Make it take the weights in a folder, in as many attempts as are allowed.

        Raises:
            ServerError: it refuses, or there is no answer.
            ValueError: the key cannot be sent.
        """
        for attempt in count():
            try:
                for path, body in self.api.load(folder):
                    self._check_success(path, self._post(path, body))
                return
            except LostServer as error:
                self.pause(attempt, error)

    def _check_success(self, path: str, answer: Any) -> None:
        """Raise an error for a refusal of status 200, as of a cache that a request still holds."""
        if isinstance(answer, dict) and answer.get("success") is False:
            raise LostServer(f"{path}: {self._cut(answer)}")

    def pause(self, attempt: int, last: LostServer) -> None:
        """Wait after a failed attempt, of which the first is 0.

        Raises:
            ServerError: there is no attempt left.
        """
        tries = self.server.retries
        if attempt >= tries:
            raise ServerError(
                f"server {self.server.url}: no answer in {tries + 1} attempts (the last: {last}). "
                "Start the server, check its address, or give it more time (timeout, retries)"
            )
        if not attempt:
            waits = sum(self._wait(each) for each in range(tries))
            warnings.warn(
                f"server {self.server.url}: lost ({last}); it is asked again up to {tries} times, "
                f"with pauses of {waits:.0f} s in all",
                stacklevel=2,
            )
        self.sleep(self._wait(attempt))

    def _wait(self, attempt: int) -> float:
        return min(self.server.backoff * 2.0 ** min(attempt, 99), LONGEST_PAUSE)

    def _named(self, body: dict[str, Any]) -> dict[str, Any]:
        named = self.server.api == "vllm" and self.server.model is not None
        return {"model": self.server.model, **body} if named else body

    def _post(self, path: str, body: Mapping[str, Any]) -> Any:
        status, target, content = self._exchange(path, json.dumps(body).encode())
        if not 200 <= status < 300:
            raise self._refusal(path, status, target, content)
        try:
            return json.loads(content) if content.strip() else {}
        except (ValueError, RecursionError):
            said = self._cut(content.decode("utf-8", "replace"))
            raise LostServer(f"{path}: {said!r}, which is no JSON") from None

    def _refusal(self, path: str, status: int, target: str, content: bytes) -> Exception:
        said = self._cut(content.decode("utf-8", "replace"))
        if status in AGAIN or status >= 500:
            return LostServer(f"{path}: status {status}, {said}")
        where = f"server {self.server.url}: {path}"
        if 300 <= status < 400:
            return ServerError(
                f"{where} is redirected, status {status}, to {self._cut(target)!r}, which is not "
                "followed; expected an answer. Give the address that answers as url"
            )
        hint = f"; {HINTS[path]}" if status == 404 and path in HINTS else ""
        return ServerError(f"{where} refuses, status {status}: {said}{hint}")

    def _exchange(self, path: str, content: bytes) -> tuple[int, str, bytes]:
        """Status, address of a redirection, and body of an answer."""
        key = service_key(self.server.api_key_env, "server")
        headers = {"Content-Type": "application/json"}
        headers |= {"Authorization": f"Bearer {key}"} if key else {}
        url = f"{self.server.url.rstrip('/')}{path}"
        request = urllib.request.Request(url, content, headers)
        until = time.monotonic() + self.server.timeout
        try:
            with self._opener.open(request, timeout=self.server.timeout) as response:
                target = response.headers.get("Location") or ""
                return response.status, target, _read_until(until, response)
        except (OSError, HTTPException) as error:  # refused, broken off, too late, no HTTP
            text = self._cut(f"{type(error).__name__}: {error}")
            raise LostServer(f"{path}: {text}") from None

    def _other(self, answer: Any, found: str) -> ServerError:
        """The error for an answer that is none of this kind of server."""
        return ServerError(
            f"server {self.server.url}: expected sampled ids and their log-probabilities from "
            f"{self.api.path}, got {self._cut(answer)} ({self._cut(found)}). Is it one of "
            f"api={self.server.api!r}?"
        )

    def _cut(self, said: Any) -> str:
        """The beginning of what was said, without the key."""
        text = without_key(str(said), self.server.api_key_env)
        return " ".join(text.split())[:LONGEST_TEXT]
