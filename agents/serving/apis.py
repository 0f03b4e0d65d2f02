"""Wire formats of vLLM and SGLang: requests for tokens, answers, loading of weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

TOKEN_ID = "token_id:"
NEUTRAL = MappingProxyType(
    {
        "temperature": 1.0,
        "top_p": 1.0,
        "top_k": -1,
        "min_p": 0.0,
        "repetition_penalty": 1.0,
        "presence_penalty": 0.0,
        "frequency_penalty": 0.0,
    }
)
"""Settings by which tokens are drawn with the model's own probabilities. All are sent: for others
vLLM takes the model's ``generation_config.json``, SGLang its ``--preferred-sampling-params``, and
tokens would be of another distribution than their log-probabilities."""
HINTS = MappingProxyType({"/collective_rpc": "start vLLM with VLLM_SERVER_DEV_MODE=1"})
"""Advice for a path that a server does not have."""


class Sampled(NamedTuple):
    """Sampled tokens, the one that ends an utterance included, and their log-probabilities.

    Attributes:
        tokens: ids; none where the server gave up.
        log_probs: of each.
        weights: by which they were sampled, as the server calls them; "" where it does not.
    """

    tokens: list[int]
    log_probs: list[float]
    weights: str = ""


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
        body: of a request for what is sampled.
        read: what was sampled, from an answer.
        score: body of a request for the log-probabilities of so many last ids of the prompt.
        scores: a list with these at its end, from an answer for a prompt of so many ids.
        load: paths and bodies that make it take the weights in a folder.
    """

    path: str
    body: Callable[[Request], dict[str, Any]]
    read: Callable[[Any], Sampled]
    score: Callable[[Request, int], dict[str, Any]]
    scores: Callable[[Any, int], list[Any]]
    load: Callable[[str], list[tuple[str, dict[str, Any]]]]


def _vllm_body(asked: Request) -> dict[str, Any]:
    return {
        "prompt": [*asked.prompt],
        "max_tokens": asked.most,
        **NEUTRAL,
        "seed": asked.seed,
        "stop_token_ids": [asked.end],
        "logprobs": 0,
        "return_tokens_as_token_ids": True,
        "add_special_tokens": False,
        "skip_special_tokens": False,
    }


def _vllm_read(answer: Any) -> Sampled:
    choice = answer["choices"][0]
    if choice.get("finish_reason") == "abort":
        return Sampled([], [])
    found = choice["logprobs"]
    if not all(token.startswith(TOKEN_ID) for token in found["tokens"]):  # a text may be a number
        raise ValueError(f"expected tokens as {TOKEN_ID}ID (return_tokens_as_token_ids)")
    tokens = [int(token.removeprefix(TOKEN_ID)) for token in found["tokens"]]
    return Sampled(tokens, [float(value) for value in found["token_logprobs"]])


def _vllm_score(asked: Request, said: int) -> dict[str, Any]:
    return {**_vllm_body(asked), "echo": True}


def _vllm_scores(answer: Any, ids: int) -> list[Any]:
    found = answer["choices"][0]["logprobs"]["token_logprobs"]
    return list(found[:ids]) if len(found) >= ids else []  # one more is sampled


def _vllm_load(folder: str) -> list[tuple[str, dict[str, Any]]]:
    told = {"method": "reload_weights", "kwargs": {"weights_path": folder}}
    return [("/collective_rpc", told), ("/reset_prefix_cache", {})]


def _sglang_body(asked: Request) -> dict[str, Any]:
    sampling = {
        "max_new_tokens": asked.most,
        **NEUTRAL,
        "stop_token_ids": [asked.end],
        "skip_special_tokens": False,
        "sampling_seed": asked.seed,
    }
    return {"input_ids": [*asked.prompt], "sampling_params": sampling, "return_logprob": True}


def _sglang_read(answer: Any) -> Sampled:
    about = answer["meta_info"]
    if (about.get("finish_reason") or {}).get("type") == "abort":
        return Sampled([], [])
    found, weights = about["output_token_logprobs"], str(about.get("weight_version") or "")
    return Sampled([int(each[1]) for each in found], [float(each[0]) for each in found], weights)


def _sglang_score(asked: Request, said: int) -> dict[str, Any]:
    return {**_sglang_body(asked), "logprob_start_len": len(asked.prompt) - said - 1}


def _sglang_scores(answer: Any, ids: int) -> list[Any]:
    return [each[0] for each in answer["meta_info"]["input_token_logprobs"]]


def _sglang_load(folder: str) -> list[tuple[str, dict[str, Any]]]:
    told = {"model_path": folder, "flush_cache": True, "weight_version": Path(folder).name}
    told |= {"abort_all_requests": True}  # such as one that we gave up: none may hold the cache
    return [("/update_weights_from_disk", told)]


APIS: Mapping[str, Api] = MappingProxyType(
    {
        "vllm": Api(
            "/v1/completions", _vllm_body, _vllm_read, _vllm_score, _vllm_scores, _vllm_load
        ),
        "sglang": Api(
            "/generate", _sglang_body, _sglang_read, _sglang_score, _sglang_scores, _sglang_load
        ),
    }
)
