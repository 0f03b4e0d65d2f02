"""Inference servers that sample tokens: how each is asked, answers, and takes weights."""

from __future__ import annotations

import json
import os
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

from dialgym.errors import finite_number, one_of, whole_number
from dialgym.io.chat_service import AGAIN

TOKEN_ID = "token_id:"
LONGEST_PAUSE = 30.0


@dataclass(frozen=True)
class RolloutServer:
    """A server that samples a rollout's utterances, and takes the policy's weights from a folder.

    The importance weight of a token, at which its advantage counts, is its probability under the
    policy when the update begins, over that with which it was sampled, truncated (Espeholt et al.
    2018, arXiv 1802.01561, section 4.1): it stands for stale weights and for the server's other
    arithmetic alike.

    Attributes:
        url: the server's address, without a path.
        folder: that weights are written into, which server and learner see under this path.
        api: ``vllm`` (``/v1/completions``; weights by ``/collective_rpc``, which wants
            ``VLLM_SERVER_DEV_MODE=1``) or ``sglang`` (``/generate``).
        model: the name by which vLLM is asked; None for the folder's.
        max_staleness: updates that the policy may be ahead of the weights by which a token was
            sampled; what is older is not said, and sampled again.
        max_inflight_tasks: most requests at a time.
        weight_sync_steps: updates from one transfer of the weights to the next.
        importance_cap: the largest importance weight.
        timeout: seconds that a request may take.
        retries, backoff: attempts after the first, and seconds before the second; the pause
            doubles, up to 30.
        api_key_env: the environment variable that has the server's key, if it wants one.

    Raises:
        ValueError: a number or name that cannot be, or weights that are sent too seldom for
            `max_staleness`.
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
    retries: int = 5
    backoff: float = 0.5
    api_key_env: str = ""

    def __post_init__(self) -> None:
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


class ServerError(ConnectionError):
    """The server refused a request, or did not answer in all attempts."""


class LostServer(ConnectionError):
    """No answer: the server may have been restarted, so that its weights are unknown."""


class Sampled(NamedTuple):
    """Sampled tokens, the one that ends an utterance included, and their log-probabilities."""

    tokens: list[int]
    log_probs: list[float]


class Request(NamedTuple):
    """A wish for tokens after a prompt, by the model's own ids.

    Attributes:
        prompt: ids.
        most: tokens.
        end: the id after which nothing is sampled.
        seed: of the draws.
    """

    prompt: Sequence[int]
    most: int
    end: int
    seed: int


class Api(NamedTuple):
    """One server's language.

    Attributes:
        path: where it is asked.
        body: of a request for what is sampled, by the model of that name.
        read: what was sampled, from an answer.
        load: paths and bodies that make it take the weights in a folder.
    """

    path: str
    body: Callable[[Request, str], dict[str, Any]]
    read: Callable[[Any], Sampled]
    load: Callable[[str], list[tuple[str, dict[str, Any]]]]


def _vllm_body(asked: Request, model: str) -> dict[str, Any]:
    return {
        "model": model,
        "prompt": [*asked.prompt],
        "max_tokens": asked.most,
        "temperature": 1.0,
        "top_p": 1.0,
        "seed": asked.seed,
        "stop_token_ids": [asked.end],
        "logprobs": 0,
        "return_tokens_as_token_ids": True,
        "add_special_tokens": False,
        "skip_special_tokens": False,
    }


def _vllm_read(answer: Any) -> Sampled:
    found = answer["choices"][0]["logprobs"]
    tokens = [int(token.removeprefix(TOKEN_ID)) for token in found["tokens"]]
    return Sampled(tokens, [float(value) for value in found["token_logprobs"]])


def _vllm_load(folder: str) -> list[tuple[str, dict[str, Any]]]:
    told = {"method": "reload_weights", "kwargs": {"weights_path": folder}}
    return [("/collective_rpc", told), ("/reset_prefix_cache", {})]


def _sglang_body(asked: Request, model: str) -> dict[str, Any]:
    sampling = {
        "max_new_tokens": asked.most,
        "temperature": 1.0,
        "top_p": 1.0,
        "stop_token_ids": [asked.end],
        "skip_special_tokens": False,
        "sampling_seed": asked.seed,
    }
    return {"input_ids": [*asked.prompt], "sampling_params": sampling, "return_logprob": True}


def _sglang_read(answer: Any) -> Sampled:
    found = answer["meta_info"]["output_token_logprobs"]
    return Sampled([int(each[1]) for each in found], [float(each[0]) for each in found])


def _sglang_load(folder: str) -> list[tuple[str, dict[str, Any]]]:
    return [("/update_weights_from_disk", {"model_path": folder, "flush_cache": True})]


APIS: Mapping[str, Api] = MappingProxyType(
    {
        "vllm": Api("/v1/completions", _vllm_body, _vllm_read, _vllm_load),
        "sglang": Api("/generate", _sglang_body, _sglang_read, _sglang_load),
    }
)


class Client:
    """Asks a server; threads may share it.

    Args:
        server: which.
        sleep: waits for seconds.
    """

    def __init__(self, server: RolloutServer, sleep: Callable[[float], Any] = time.sleep) -> None:
        self.server, self.api, self.sleep = server, APIS[server.api], sleep

    def sample(self, asked: Request) -> Sampled:
        """Sample once.

        Raises:
            LostServer: no answer in time, or none at all.
            ServerError: it refuses the request, or answers something else.
        """
        model = self.server.model or self.server.folder
        answer = self._post(self.api.path, self.api.body(asked, model))
        try:
            found = self.api.read(answer)
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise ServerError(
                f"server {self.server.url}: expected sampled ids and their log-probabilities from "
                f"{self.api.path}, got {str(answer)[:200]} ({type(error).__name__}: {error}). Is "
                f"it one of api={self.server.api!r}?"
            ) from error
        if not found.tokens or len(found.tokens) > asked.most:
            raise ServerError(
                f"server {self.server.url}: expected 1 to {asked.most} tokens, got "
                f"{len(found.tokens)}"
            )
        return found

    def load(self, folder: str) -> None:
        """Make it take the weights in a folder, in as many attempts as are allowed.

        Raises:
            ServerError: it refuses, or there is no answer.
        """
        for attempt in range(self.server.retries + 1):
            try:
                for path, body in self.api.load(folder):
                    self._post(path, body)
                return
            except LostServer as error:
                lost = error
                self.pause(attempt)
        raise self.gone(lost)

    def pause(self, attempt: int) -> None:
        """Wait before another attempt."""
        self.sleep(min(self.server.backoff * 2**attempt, LONGEST_PAUSE))

    def gone(self, last: LostServer) -> ServerError:
        """The error after all attempts."""
        return ServerError(
            f"server {self.server.url}: no answer in {self.server.retries + 1} attempts (the last: "
            f"{last}). Start the server, check its address, or give it more time (timeout, retries)"
        )

    def _post(self, path: str, body: Mapping[str, Any]) -> Any:
        request = urllib.request.Request(
            f"{self.server.url.rstrip('/')}{path}",
            json.dumps(body).encode(),
            {"Content-Type": "application/json", **self._key()},
        )
        try:
            with urllib.request.urlopen(request, timeout=self.server.timeout) as response:
                content = response.read()
        except urllib.error.HTTPError as error:
            said = error.read(300).decode("utf-8", "replace")
            if error.code in AGAIN or error.code >= 500:
                raise LostServer(f"{path}: status {error.code}, {said}") from None
            raise ServerError(
                f"server {self.server.url}: {path} refuses, status {error.code}: {said}"
            ) from None
        except OSError as error:  # refused, broken off, too late
            raise LostServer(f"{path}: {type(error).__name__}: {error}") from None
        try:
            return json.loads(content) if content.strip() else {}
        except ValueError:
            raise LostServer(f"{path}: {content[:100]!r}, which is no JSON") from None

    def _key(self) -> dict[str, str]:
        key = os.environ.get(self.server.api_key_env, "") if self.server.api_key_env else ""
        return {"Authorization": f"Bearer {key}"} if key else {}
