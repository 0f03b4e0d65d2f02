"""Services of language models over HTTP: requests and answers of OpenAI's chat protocol.

``POST /chat/completions`` is spoken by vLLM, SGLang, llama.cpp, Ollama and most providers.
"""

import asyncio
import json
import os
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache
from typing import Any, NamedTuple

from dialgym.io.files import paired
from dialgym.io.model_settings import ModelSettings
from dialgym.optional import require

AGAIN = (408, 409, 425, 429)
"""Statuses below 500 after which the same request may succeed."""
MOST_BYTES = 2**23
"""Bytes of the longest answer that is read."""
FAILED = ("abort", "error")
"""Reasons of an end by which a service says that it has failed (vLLM, SGLang, OpenRouter)."""
MASK = "***"


class CompletionRefusedError(RuntimeError):
    """Refusal of a request, by the service or before it is sent: another attempt would not help."""


class ServiceFault(Exception):
    """A failed attempt, after which another one may succeed, in `wait` seconds or by backoff."""

    def __init__(self, text: str, wait: float | None = None) -> None:
        super().__init__(text)
        self.wait = wait


class ModelAnswer(NamedTuple):
    """Answer of a language model.

    Attributes:
        text: "" where it said nothing, or called a tool in place of it.
        finish_reason: as the service says it: ``stop``, ``length``.
        prompt_tokens, answer_tokens: as the service counts them, 0 where it does not.
    """

    text: str
    finish_reason: str
    prompt_tokens: int
    answer_tokens: int

    @property
    def is_silence(self) -> bool:
        """Tell if it has no word, and the service names no reason: another attempt may have."""
        return not self.text.strip() and self.finish_reason in ("", "stop")


class _Response(NamedTuple):
    status: int
    headers: Mapping[str, str]
    content: bytes


class HttpService:
    """A language model behind a service; its connections belong to the event loop of the caller.

    A pickled copy begins without connections.

    Args:
        settings: the model and its service.
    """

    def __init__(self, settings: ModelSettings) -> None:
        self.settings = settings
        self._idle: list[Any] = []  # httpx clients, of one connection each
        self._loop: Any = None  # of the connections
        self._free: Any = None  # semaphore of the loop

    async def answer(self, body: Mapping[str, Any], where: str) -> ModelAnswer:
        """Ask once.

        Args:
            body: of the request.
            where: what asks, for errors.

        Raises:
            ServiceFault: another attempt may succeed.
            CompletionRefusedError: it would not.
            ImportError: httpx is not installed.
        """
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop, self._idle = loop, []
            self._free = asyncio.Semaphore(self.settings.concurrency)
        try:
            key = service_key(self.settings.api_key_env, where)
        except ValueError as error:
            raise CompletionRefusedError(str(error)) from None
        async with self._free:
            response = await self._attempt(body, key, where)
        self._check(response, where)
        return completion_of(response.content, self._without_key)

    async def _attempt(self, body: Mapping[str, Any], key: str, where: str) -> _Response:
        httpx = require("httpx", "lm", "a language model behind a service")
        http = self._idle.pop() if self._idle else self._opened(httpx, where)
        try:
            # a library's read timeout begins again with each byte
            async with asyncio.timeout(self.settings.timeout):
                return await self._post(http, body, key)
        except TimeoutError:
            raise ServiceFault(f"it took more than {self.settings.timeout:g} s") from None
        except httpx.HTTPError as error:
            raise ServiceFault(self._told(error)) from None
        except (httpx.InvalidURL, UnicodeError) as error:
            raise CompletionRefusedError(
                f"{where}: the request to {self.settings.base_url} cannot be sent "
                f"({self._told(error)}). Check the address (base_url)."
            ) from None
        finally:
            self._idle.append(http)

    def _opened(self, httpx: Any, where: str) -> Any:
        try:
            return _connection(httpx)
        except (ImportError, OSError, ValueError) as error:
            raise CompletionRefusedError(
                f"{where}: no connection to {self.settings.base_url} can be made "
                f"({self._told(error)}). Check the environment variables that name proxies and "
                "certificates (HTTP_PROXY, HTTPS_PROXY, ALL_PROXY, SSL_CERT_FILE)."
            ) from error

    async def _post(self, http: Any, body: Mapping[str, Any], key: str) -> _Response:
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        url, content = f"{self.settings.base_url}/chat/completions", bytearray()
        async with http.stream("POST", url, json=body, headers=headers) as response:
            async for part in response.aiter_bytes():
                content += part
                if len(content) > MOST_BYTES:
                    raise ServiceFault(f"an answer of more than {MOST_BYTES:,} bytes")
            return _Response(response.status_code, response.headers, bytes(content))

    def _check(self, response: _Response, where: str) -> None:
        """Raise an error for a status other than 200."""
        status, headers, content = response
        if status == 200:
            return
        said = " ".join(self._without_key(_decoded(content)).split())
        text = f"status {status}: {said[:300]}".rstrip(": ")
        if status >= 500 or status in AGAIN:
            raise ServiceFault(text, wait_of(headers.get("retry-after")))
        raise CompletionRefusedError(
            f"{where}: {self.settings.base_url} refused the request to {self.settings.model!r}: "
            f"{text}. {self._advice(status, self._without_key(headers.get('location', '')))}"
        )

    def _advice(self, status: int, location: str) -> str:
        name = self.settings.api_key_env
        if status in (401, 403):
            state = "is set" if os.environ.get(name) else "is not set"
            return f"The key is read from the environment variable {name}, which {state}."
        if 300 <= status < 400:
            return (
                f"It sends on to {location[:300]!r}, which is not asked. Give the address that "
                "answers as base_url."
            )
        if status == 404:
            return "Check the model's name, and that base_url ends as the service's does (/v1)."
        return "Check the model's settings."

    def _without_key(self, text: str) -> str:
        return without_key(text, self.settings.api_key_env)

    def _told(self, error: Exception) -> str:
        return self._without_key(f"{type(error).__name__}: {error}".rstrip(": "))

    async def close(self) -> None:
        """Close the connections; the next request opens new ones."""
        idle, self._idle = self._idle, []
        for http in idle:
            await http.aclose()

    def __getstate__(self) -> dict[str, Any]:
        """Without connections."""
        return {**vars(self), "_idle": [], "_loop": None, "_free": None}


def service_key(variable: str, where: str) -> str:
    """The key in an environment variable, without white space around it; "" for none.

    Raises:
        ValueError: no header can hold it; the message names the variable alone.
    """
    key = os.environ.get(variable, "").strip()
    if key.isascii() and key.isprintable():
        return key
    raise ValueError(
        f"{where}: the environment variable {variable} has a key with control characters, or "
        "others than ASCII; expected one line of ASCII. Set it again."
    )


def without_key(text: str, variable: str) -> str:
    """A text with `MASK` for the key in a variable, as JSON or Python write it, too; cut it after.

    Args:
        text: that is to be shown.
        variable: of the environment.
    """
    key = os.environ.get(variable, "").strip()
    forms = key, json.dumps(key)[1:-1], key.replace("/", "\\/"), repr(key)[1:-1]
    for form in forms if key else ():
        text = text.replace(form, MASK)
    return text


def _connection(httpx: Any) -> Any:
    """A client of one connection: with a pool of many, each request looks at all of them."""
    limits = httpx.Limits(max_connections=1)
    return httpx.AsyncClient(timeout=None, limits=limits, verify=_certificates())


@cache
def _certificates() -> Any:
    """Certificates that are trusted: they take long to read, and all connections share them."""
    return require("httpx", "lm", "a language model behind a service").create_ssl_context()


def completion_of(content: bytes, masked: Callable[[str], str] = str) -> ModelAnswer:
    """Answer of a response's body; a fault where it is none, or where the service has failed.

    Args:
        content: the body.
        masked: a text with nothing in it that is not to be shown.
    """
    try:
        answer = json.loads(content)
        choice = answer["choices"][0]
        _check_choice(choice, masked)
        text = _text_of(choice["message"].get("content") or "")
        usage = answer.get("usage") or {}
        counts = [int(usage.get(name) or 0) for name in ("prompt_tokens", "completion_tokens")]
        reason = str(choice.get("finish_reason") or "")
        return ModelAnswer(without_surrogates(text), without_surrogates(reason), *counts)
    except _NO_COMPLETION as error:
        got = masked(_decoded(content))[:80]
        raise ServiceFault(
            f"expected a chat completion; got {got!r} ({type(error).__name__})"
        ) from None


_NO_COMPLETION = (
    *(ValueError, LookupError, TypeError),
    *(AttributeError, RecursionError, OverflowError),
)


def _check_choice(choice: Any, masked: Callable[[str], str]) -> None:
    """Raise a fault for what the service itself marks as failed, whatever text it has."""
    error, reason = choice.get("error"), choice.get("finish_reason")
    if error:
        raise ServiceFault(f"the service has failed: {masked(str(error))[:300]}")
    if reason in FAILED:
        raise ServiceFault(f"the service has failed: finish_reason {reason!r}")


def _decoded(content: bytes) -> str:
    return content.decode(json.detect_encoding(content), "replace")


def without_surrogates(value: Any) -> Any:
    """A JSON value with U+FFFD for lone surrogates in its texts, which no encoding can write."""
    if isinstance(value, str):
        return paired(value)
    if isinstance(value, Mapping):
        return {name: without_surrogates(each) for name, each in value.items()}
    return [*map(without_surrogates, value)] if isinstance(value, list | tuple) else value


def _text_of(content: Any) -> str:
    """A message's text, whole or in parts; parts that are no text are left out."""
    if isinstance(content, list):
        content = "".join(part["text"] for part in content if part.get("type") == "text")
    if not isinstance(content, str):
        raise TypeError(f"content is {type(content).__name__}")
    return content


def wait_of(header: str | None) -> float | None:
    """Seconds to wait by a ``Retry-After``, a number or a date; None where it is neither."""
    if not header:
        return None
    try:
        return max(0.0, float(header))
    except ValueError:
        pass
    try:
        date = parsedate_to_datetime(header)
    except ValueError:
        return None
    date = date if date.tzinfo else date.replace(tzinfo=UTC)
    return max(0.0, (date - datetime.now(UTC)).total_seconds())
