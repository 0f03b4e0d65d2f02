"""Client of language models behind a service: asynchronous, with retries, a budget and a tape.

It speaks ``POST /chat/completions`` of OpenAI's protocol, which vLLM, SGLang, llama.cpp, Ollama
and most providers offer.
"""

import asyncio
import json
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache
from typing import Any, NamedTuple

from dialgym.io.model_settings import SPENT, Budget, BudgetSpentError, ModelSettings, Usage
from dialgym.io.tape import Tape, TapeMissError, key_of
from dialgym.optional import require

AGAIN = (408, 409, 425, 429)
"""Statuses below 500 after which the same request may succeed."""
LONGEST_BACKOFF = 30.0
"""Seconds; the longest pause that is not asked for."""
LONGEST_WAIT = 300.0
"""Seconds; the longest pause that a service may ask for."""
MOST_BYTES = 2**23
"""Bytes of the longest answer that is read."""


class NoCompletionError(ConnectionError):
    """No usable answer of a language model after all attempts."""


class CompletionRefusedError(RuntimeError):
    """Refusal of a request by the service: another attempt would not help."""


STOPS = (CompletionRefusedError, BudgetSpentError, TapeMissError)
"""Errors that say all by themselves, and after which nothing else is to be asked."""


class _Fault(Exception):
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


class ChatClient:
    """Asks one language model; its connections belong to the event loop that it is called in.

    A request is tried again after a broken connection, a timeout, a status of 5xx or one of
    `AGAIN`, an answer that is no completion, and one without a word, of which the last one stands;
    never after another 4xx. A pickled copy, and one in a forked process, begins without
    connections and counts its own usage.

    Args:
        settings: the model, the service and what may be spent.
        tape: answers that are recorded or replayed; None for neither.
        sleep: awaits a number of seconds.

    Attributes:
        usage: counts of what was asked; `SPENT` has those of all clients.
    """

    def __init__(
        self,
        settings: ModelSettings,
        tape: Tape | None = None,
        sleep: Callable[[float], Awaitable[Any]] = asyncio.sleep,
    ) -> None:
        self.settings, self.tape, self.usage = settings, tape, Usage()
        self._sleep = sleep
        self._idle: list[Any] = []  # httpx clients, of one connection each
        self._loop: Any = None  # of the connections

    @property
    def base_url(self) -> str:
        """Address of the service."""
        return self.settings.base_url

    async def complete(
        self,
        messages: Sequence[Mapping[str, object]],
        drawn: int = 0,
        turn: int = 0,
        where: str = "",
    ) -> ModelAnswer:
        """The model's answer to a chat.

        Args:
            messages: each with ``role`` and ``content``.
            drawn: number drawn by the dialogue's generator: it tells equal requests apart on a
                tape, and is the seed of sampling.
            turn: number of the turn in the dialogue.
            where: what asks, for errors.

        Raises:
            NoCompletionError: all attempts failed; the message has the last reason.
            CompletionRefusedError: the service does not take such a request.
            BudgetSpentError: the budget is spent.
            TapeMissError: the tape that is replayed has no answer.
            ImportError: httpx is not installed.
        """
        request, where = self.settings.request(messages), where or f"turn {turn}"
        key = key_of(request, drawn, turn)
        found = None if self.tape is None else self.tape.find(key, where)
        if found is not None:
            self.count(replayed=1)
            return ModelAnswer(**found)
        seed = {"seed": drawn % 2**31} if self.settings.seeded else {}
        answer = await self._ask({**request, **seed}, where)
        if self.tape is None:
            return answer
        held = {**request, "drawn": drawn, "turn": turn}
        return ModelAnswer(**self.tape.record(key, held, answer._asdict()))

    async def close(self) -> None:
        """Close the connections; the next request opens new ones."""
        idle, self._idle = self._idle, []
        for http in idle:
            await http.aclose()

    async def _ask(self, body: dict[str, Any], where: str) -> ModelAnswer:
        budget = self.settings.budget
        assert isinstance(budget, Budget)
        budget.check(self.usage)
        self.count(requests=1)
        last = ""
        for attempt in range(self.settings.retries + 1):
            left, wait = self.settings.retries - attempt, None
            try:
                answer = self._counted(await self._attempt(body, where))
                if not (left and answer.is_silence):
                    return answer
            except _Fault as error:
                last, wait = str(error), error.wait
            if left:
                self.count(retries=1)
                await self._sleep(self._pause(attempt, wait))
        raise NoCompletionError(
            f"{where}: no answer of {self.settings.model!r} at {self.base_url} in "
            f"{self.settings.retries + 1} attempts (the last: {last}). Start the service, check "
            "its address (base_url), or give it more time (timeout, retries)."
        )

    def _pause(self, attempt: int, asked: float | None) -> float:
        if asked is not None:
            return min(asked, LONGEST_WAIT)
        return min(self.settings.backoff * 2**attempt, LONGEST_BACKOFF)

    def _counted(self, answer: ModelAnswer) -> ModelAnswer:
        self.count(
            prompt_tokens=answer.prompt_tokens,
            answer_tokens=answer.answer_tokens,
            empty=not answer.text.strip(),
            cut=answer.finish_reason == "length",
        )
        return answer

    def count(self, **more: int) -> None:
        """Count more of anything in `usage`, by its attributes' names."""
        for usage in (self.usage, SPENT):
            usage.add(**more)

    async def _attempt(self, body: dict[str, Any], where: str) -> ModelAnswer:
        httpx = require("httpx", "lm", "a language model behind a service")
        http = self._connection(httpx)
        try:
            # a library's read timeout begins again with each byte
            async with asyncio.timeout(self.settings.timeout):
                status, headers, content = await self._post(http, body)
        except TimeoutError:
            raise _Fault(f"it took more than {self.settings.timeout:g} s") from None
        except httpx.HTTPError as error:
            raise _Fault(f"{type(error).__name__}: {error}".rstrip(": ")) from None
        finally:
            self._idle.append(http)
        self._check(status, headers, content, where)
        return completion_of(content)

    def _connection(self, httpx: Any) -> Any:
        """A client that is idle, or a new one: a pool looks at all its connections each time."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop, self._idle = loop, []
        if self._idle:
            return self._idle.pop()
        limits = httpx.Limits(max_connections=1)
        return httpx.AsyncClient(timeout=None, limits=limits, verify=_certificates())

    async def _post(self, http: Any, body: dict[str, Any]) -> tuple[int, Mapping[str, str], bytes]:
        key = os.environ.get(self.settings.api_key_env, "")
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        url, content = f"{self.base_url}/chat/completions", bytearray()
        async with http.stream("POST", url, json=body, headers=headers) as response:
            async for part in response.aiter_bytes():
                content += part
                if len(content) > MOST_BYTES:
                    raise _Fault(f"an answer of more than {MOST_BYTES:,} bytes")
            return response.status_code, response.headers, bytes(content)

    def _check(self, status: int, headers: Mapping[str, str], content: bytes, where: str) -> None:
        """Raise an error for a status other than 200."""
        if status == 200:
            return
        text = f"status {status}: {self._without_key(content[:300])}".rstrip(": ")
        if status >= 500 or status in AGAIN:
            raise _Fault(text, wait_of(headers.get("retry-after")))
        raise CompletionRefusedError(
            f"{where}: {self.base_url} refused the request to {self.settings.model!r}: {text}. "
            f"{self._advice(status)}"
        )

    def _advice(self, status: int) -> str:
        name = self.settings.api_key_env
        if status in (401, 403):
            state = "is set" if os.environ.get(name) else "is not set"
            return f"The key is read from the environment variable {name}, which {state}."
        if status == 404:
            return "Check the model's name, and that base_url ends as the service's does (/v1)."
        return "Check the model's settings."

    def _without_key(self, content: bytes) -> str:
        text = " ".join(content.decode("utf-8", "replace").split())
        key = os.environ.get(self.settings.api_key_env)
        return text.replace(key, "***") if key else text

    def __getstate__(self) -> dict[str, Any]:
        """Without connections and counts."""
        return {**vars(self), "_idle": [], "_loop": None, "usage": Usage()}


@cache
def _certificates() -> Any:
    """Certificates that are trusted: they take long to read, and all connections share them."""
    return require("httpx", "lm", "a language model behind a service").create_ssl_context()


def completion_of(content: bytes) -> ModelAnswer:
    """Answer of a response's body; a fault where it is none."""
    try:
        answer = json.loads(content)
        choice = answer["choices"][0]
        text = choice["message"].get("content") or ""
        usage = answer.get("usage") or {}
        counts = [int(usage.get(name) or 0) for name in ("prompt_tokens", "completion_tokens")]
        if not isinstance(text, str):
            raise TypeError(f"content is {type(text).__name__}")
        return ModelAnswer(text, str(choice.get("finish_reason") or ""), *counts)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise _Fault(
            f"expected a chat completion; got {content[:80]!r} ({type(error).__name__})"
        ) from None


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
