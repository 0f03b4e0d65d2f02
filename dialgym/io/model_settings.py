"""Settings of language models behind a service: endpoint, sampling, retries, budget, usage."""

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from dialgym.errors import check_flags, finite_number, settings_as, whole_number

BASE_URL = "OPENAI_BASE_URL"
"""Environment variable with the address of the service where none is given."""
OPENAI = "https://api.openai.com/v1"
"""Address where there is no such variable."""
NOT_UNDERSTOOD = "not_understood"
"""Among the counts of an evaluation: texts of models that their task makes nothing of."""
IN_PROCESS = "transformers"
"""In the place of an address: a model of that library, in this process."""
OWN_FIELDS = ("model", "messages")
"""Fields of each request that are no settings of sampling."""


@dataclass(frozen=True)
class Budget:
    """Bounds of what may be spent on a service; None is no bound.

    Attributes:
        requests: most requests; retries are not counted.
        tokens: most tokens of prompts and answers together.
        seconds: most seconds since the first request.
        money: most money, in the currency of `prompt_price` and `answer_price`.
        prompt_price, answer_price: of a million tokens of prompts, and of answers.

    Raises:
        ValueError: a bound is negative or no number.
    """

    requests: float | None = None
    tokens: float | None = None
    seconds: float | None = None
    money: float | None = None
    prompt_price: float = 0.0
    answer_price: float = 0.0

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value is not None and finite_number(f"{name} of a budget", value) < 0:
                raise ValueError(f"{name} of a budget: expected 0 or more; got {value!r}.")

    def cost(self, usage: "Usage") -> float:
        """Money that the tokens have cost."""
        prompts = usage.prompt_tokens * self.prompt_price
        return (prompts + usage.answer_tokens * self.answer_price) / 1e6

    def check(self, usage: "Usage") -> None:
        """Raise a `BudgetSpentError` where one more request would not be within the bounds."""
        spent = {
            "requests": float(usage.requests),
            "tokens": float(usage.prompt_tokens + usage.answer_tokens),
            "seconds": usage.seconds,
            "money": self.cost(usage),
        }
        for name, value in spent.items():
            bound = getattr(self, name)
            if bound is not None and value >= bound:
                raise BudgetSpentError(
                    f"budget: {value:g} of {bound:g} {name} are spent, and no more is asked. Give "
                    "a larger one; with a tape (record=PATH), what was answered is not asked again."
                )


class BudgetSpentError(RuntimeError):
    """The budget of a language model is spent."""


@dataclass
class Usage:
    """Counts of what a client has asked for.

    Attributes:
        requests: answered or given up, without retries.
        retries: attempts beyond the first.
        replayed: answers that a tape had.
        missed: answers that it did not have, where the task's own speaker took the model's place.
        empty: answers without a word.
        cut: answers that ended at the most tokens.
        unscored: answers of a judge that had no score, after which it was asked again.
        defaulted: dialogues or replies that got a judge's default in the place of a score.
        prompt_tokens, answer_tokens: as the service counts them.
        began: time of the first request (`time.monotonic`), or None.
    """

    requests: int = 0
    retries: int = 0
    replayed: int = 0
    missed: int = 0
    empty: int = 0
    cut: int = 0
    unscored: int = 0
    defaulted: int = 0
    prompt_tokens: int = 0
    answer_tokens: int = 0
    began: float | None = field(default=None, repr=False, compare=False)

    @property
    def seconds(self) -> float:
        """Seconds since the first request."""
        return 0.0 if self.began is None else time.monotonic() - self.began

    def add(self, **more: int) -> None:
        """Count more of anything, by the attributes' names."""
        for name, count in more.items():
            setattr(self, name, getattr(self, name) + int(count))
        if self.began is None and self.requests:
            self.began = time.monotonic()

    def counts(self) -> dict[str, int]:
        """Counts that are not 0, by name."""
        return {name: n for name, n in vars(self).items() if name != "began" and n}

    def since(self, before: Mapping[str, int]) -> dict[str, int]:
        """The counts since `before`."""
        more = {name: n - before.get(name, 0) for name, n in self.counts().items()}
        return {name: n for name, n in more.items() if n}


_TOLD = ("requests", "retries", "replayed", "missed", "empty", "cut", "unscored", "defaulted")


def usage_text(counts: Mapping[str, int]) -> str:
    """``1,200 requests, 3 retries, 96,000 + 4,800 tokens``; "" where nothing was asked."""
    tokens = [counts.get(name, 0) for name in ("prompt_tokens", "answer_tokens")]
    named = (*_TOLD, NOT_UNDERSTOOD)
    parts = [f"{counts[name]:,} {name.replace('_', ' ')}" for name in named if counts.get(name)]
    return ", ".join([*parts, f"{tokens[0]:,} + {tokens[1]:,} tokens"] if any(tokens) else parts)


SPENT = Usage()
"""Counts of all clients of this process, and of the worker processes that it has asked."""


@dataclass(frozen=True)
class ModelSettings:
    """A language model behind a service that speaks the chat protocol of OpenAI.

    Attributes:
        model: its name there.
        base_url: address of the service, up to ``/v1``; "" for that of the environment variable
            ``OPENAI_BASE_URL``, and where there is none, OpenAI's. ``transformers`` for this
            process: `model` is then a folder, or ``hf:NAME``; see `LocalModel`.
        api_key_env: environment variable with the key, read when it is needed and kept nowhere;
            without one in it, no key is sent.
        temperature, top_p, max_tokens: of sampling; None leaves one to the service.
        seeded: a ``seed`` drawn in the dialogue is sent along.
        timeout: seconds that one attempt may take in all.
        retries: more attempts after the first.
        backoff: seconds before the second attempt; the pause doubles each time. A service that
            says how long to wait (``Retry-After``) is believed.
        concurrency: most requests at a time.
        budget: a `Budget`, or a mapping of its bounds.
        extra: further fields of each request, none of `OWN_FIELDS`.

    Raises:
        ValueError: a value that cannot be.
    """

    model: str
    base_url: str = ""
    api_key_env: str = "OPENAI_API_KEY"
    temperature: float | None = 1.0
    top_p: float | None = None
    max_tokens: int | None = 256
    seeded: bool = True
    timeout: float = 60.0
    retries: int = 4
    backoff: float = 0.5
    concurrency: int = 64
    budget: Budget | Mapping[str, Any] | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.model, str) or not self.model.strip():
            raise ValueError(f"model: expected its name at the service; got {self.model!r}.")
        where = f"the language model {self.model!r}"
        for name in ("base_url", "api_key_env"):
            if not isinstance(getattr(self, name), str):
                raise ValueError(f"{name} of {where} must be a text; got {getattr(self, name)!r}.")
        check_flags(ModelSettings, vars(self), where)
        _check_extra(self.extra, where)
        url = self.base_url or os.environ.get(BASE_URL) or OPENAI
        if url != IN_PROCESS:
            _check_url(url)
        budget = settings_as(Budget, "budget of a language model", self.budget)
        vars(self).update(base_url=url.rstrip("/"), budget=budget, extra=dict(self.extra))
        whole_number("retries", self.retries, where, 0)
        whole_number("concurrency", self.concurrency, where)
        if self.max_tokens is not None:
            whole_number("max_tokens", self.max_tokens, where)
        for name in ("temperature", "top_p", "timeout", "backoff"):
            value = getattr(self, name)
            if value is not None and finite_number(f"{name} of {where}", value) < 0:
                raise ValueError(f"{name} of {where}: expected 0 or more; got {value!r}.")
        if not self.timeout:
            raise ValueError(f"timeout of {where}: expected more than 0 seconds; got 0.")

    @property
    def host(self) -> str:
        """Host of the service, or ``transformers`` for this process."""
        return IN_PROCESS if self.in_process else urlsplit(self.base_url).hostname or ""

    @property
    def in_process(self) -> bool:
        """Tell if the model is one of transformers in this process."""
        return self.base_url == IN_PROCESS

    def sampling(self) -> dict[str, Any]:
        """Fields of each request that say how an answer is sampled."""
        own = {
            "temperature": self.temperature,
            "top_p": self.top_p,
            "max_tokens": self.max_tokens,
        }
        return {**{name: value for name, value in own.items() if value is not None}, **self.extra}

    def request(self, messages: Any) -> dict[str, Any]:
        """Body of a request, without the seed."""
        return {"model": self.model, "messages": list(messages), **self.sampling()}


def _check_extra(extra: object, where: str) -> None:
    if not isinstance(extra, Mapping):
        raise ValueError(
            f"extra of {where}: expected a mapping of further fields of a request, such as "
            f"{{'top_k': 20}}; got {extra!r:.80}."
        )
    for name in OWN_FIELDS:
        if name in extra:
            raise ValueError(
                f"extra of {where}: {name!r} is no further field, as each request has its own. "
                "Leave it out."
            )
    if extra.get("stream"):
        raise ValueError(
            f"extra of {where}: expected no stream, as answers are read whole; got "
            f"{extra['stream']!r}. Leave it out."
        )


def _check_url(url: str) -> None:
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018  its range is checked as it is read
        fits = url.isprintable() and " " not in url
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(
            "base_url: expected http://HOST:PORT/v1 with a PORT from 0 to 65535, and without "
            f"spaces or control characters; got {url!r}."
        )
    if parts.username or parts.password:
        raise ValueError(
            "base_url: it has a password in it, which would be shown. Give the key in an "
            "environment variable (api_key_env)."
        )
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query:
        raise ValueError(
            f"base_url: expected http://HOST:PORT/v1, or {IN_PROCESS!r} for a model in this "
            f"process; got {url!r}."
        )
