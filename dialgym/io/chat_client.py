"""Client of a language model: asynchronous, with retries, a budget and a tape."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

from dialgym.io.chat_service import (
    CompletionRefusedError,
    HttpService,
    ModelAnswer,
    ServiceFault,
    without_surrogates,
)
from dialgym.io.model_settings import SPENT, Budget, BudgetSpentError, ModelSettings, Usage
from dialgym.io.tape import Tape, TapeMissError, key_of

LONGEST_BACKOFF = 30.0
"""Seconds; the longest pause that is not asked for."""
LONGEST_WAIT = 300.0
"""Seconds; the longest pause that a service may ask for."""


class NoCompletionError(ConnectionError):
    """No usable answer of a language model after all attempts."""


STOPS = (CompletionRefusedError, BudgetSpentError, TapeMissError)
"""Errors that say all by themselves, and after which nothing else is to be asked."""


class Service(Protocol):
    """A service that answers requests of a chat; it may be this process."""

    async def answer(self, body: Mapping[str, Any], where: str) -> ModelAnswer:
        """Ask once; a `ServiceFault` where another attempt may succeed."""
        ...

    async def close(self) -> None:
        """Close open connections; the next request opens new ones."""
        ...


class ChatClient:
    """Asks one language model, in the event loop that it is called in.

    A request is tried again after a `ServiceFault`, and an answer without a word, of which the last
    one stands. A pickled copy counts its own usage.

    Args:
        settings: the model, the service and what may be spent.
        tape: answers that are recorded or replayed; None for neither.
        service: asked for answers; None for an `HttpService`.
        sleep: awaits a number of seconds.

    Attributes:
        usage: counts of what was asked; `SPENT` has those of all clients.
    """

    def __init__(
        self,
        settings: ModelSettings,
        tape: Tape | None = None,
        service: Service | None = None,
        sleep: Callable[[float], Awaitable[Any]] = asyncio.sleep,
    ) -> None:
        self.settings, self.tape, self.usage = settings, tape, Usage()
        self._service = HttpService(settings) if service is None else service
        self._sleep = sleep

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
            messages: each with ``role`` and ``content``, in which U+FFFD is sent for lone
                surrogates.
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
        request = self.settings.request(without_surrogates(list(messages)))
        where = where or f"turn {turn}"
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
        await self._service.close()

    async def _ask(self, body: dict[str, Any], where: str) -> ModelAnswer:
        budget = self.settings.budget
        assert isinstance(budget, Budget)
        budget.check(self.usage)
        self.count(requests=1)
        last = ""
        for attempt in range(self.settings.retries + 1):
            left, wait = self.settings.retries - attempt, None
            try:
                answer = self._counted(await self._service.answer(body, where))
                if not (left and answer.is_silence):
                    return answer
            except ServiceFault as error:
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

    def __getstate__(self) -> dict[str, Any]:
        """Without counts."""
        return {**vars(self), "usage": Usage()}
