"""Stored dialogues as the tokens that an env would show: loading, checks, rewards of tokens."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from dialgym.datasets import Dataset, TokenData
from dialgym.errors import with_settings
from dialgym.io.objects import without_module
from dialgym.language import Tokenizer
from dialgym.language.tokenizers import END, TAGS, UNK

WARNED, REFUSED = 0.01, 0.5
"""Shares of a learner's tokens that a vocabulary may lack."""
EXAMPLES = 5
"""Words that a message about them shows."""


def token_data(dataset: Any, space: Any, env_id: str | None = None) -> TokenData:
    """The dialogues of `dataset` as an env with the observation space `space` writes them.

    Args:
        dataset: a `Dataset`, `TokenData`, or the path or name that `dialgym.load_dataset` takes.
        space: a `TokenBox`.
        env_id: of the env, where it is one of dialgym's.

    Raises:
        ValueError: the dialogues were held in another env, are of another party's learner or
            cannot be written in that space, or there are none.
    """
    dataset = loaded(dataset)
    check_environment(dataset, env_id)
    if isinstance(dataset, Dataset):
        data = dataset.tokens(tokenizer=space.tokenizer, window=space.shape[0])
        _check_known(dataset, data)
        dataset = data
    if not isinstance(dataset, TokenData):
        raise ValueError(
            "dataset: expected a dialgym Dataset, its TokenData, or the path of one, got "
            f"{type(dataset).__name__}; make one with dialgym.collect"
        )
    _check_party(dataset, space)
    expected = (space.shape[0], int(space.high.max()) + 1)
    if (dataset.window, dataset.vocab_size) != expected:
        raise ValueError(
            f"dataset: expected windows of {expected[0]} tokens out of {expected[1]}, as in the "
            f"env, got {dataset.window} out of {dataset.vocab_size}; give the env's tokenizer and "
            "window to Dataset.tokens"
        )
    own = dataset.layout.tokenizer
    if own != getattr(space, "tokenizer", own):
        raise ValueError(
            f"dataset: expected token ids of the env's vocabulary, got those of another one of "
            f"{dataset.vocab_size} tokens: the same ids would be other words; give the env's "
            "tokenizer to Dataset.tokens"
        )
    if not dataset.is_action.any():
        raise ValueError("dataset: expected dialogues in which the learner speaks, got none")
    return dataset


def with_token_reward(data: TokenData, settings: Mapping[str, Any] | None) -> TokenData:
    """The data with rewards of tokens, as the arguments of `TokenData.with_token_rewards` say.

    Raises:
        ValueError: an unknown setting, or token.
    """
    if not settings:
        return data
    if not isinstance(settings, Mapping):
        raise ValueError(
            "token_reward: expected a mapping such as {constant: -0.01, by_token: {<end>: 1.0}}, "
            f"got {settings!r}"
        )
    by_token = settings.get("by_token")
    if isinstance(by_token, Mapping) and not all(isinstance(key, str) for key in by_token):
        raise ValueError(  # a run's files would spell ids as texts
            "token_reward: expected by_token by the tokens' texts, such as '<end>', got "
            f"{dict(by_token)!r:.80}; ids go into a JSON file, by_token: FILE"
        )
    return with_settings(data.with_token_rewards, "token_reward", settings)  # type: ignore[no-any-return]


def _check_party(data: TokenData, space: Any) -> None:
    """Raises ValueError for dialogues whose learner is not that of the env, where it has tags."""
    own, tag = data.layout, getattr(space, "learner_tag", None)
    if tag not in (None, own.tag):
        learner = next(name for name, its in TAGS.items() if its == tag)
        raise ValueError(
            f"dataset: expected dialogues whose learner is the {learner}, as in the env, got those "
            f"of the {own.party}; collect them with env_kwargs={{'learner': {learner!r}}}, or make "
            f"the env with learner={own.party!r}"
        )


def _check_known(dataset: Dataset, data: TokenData) -> None:
    """Warn of learner's texts with words that the env's vocabulary lacks; refuse them where most.

    Token ids that were logged are those of a policy that may have said anything.

    Raises:
        ValueError: more than half of the tokens of the learner's texts are ``<unk>``.
    """
    texts = data.is_action & np.repeat(dataset["vocabulary"] == "", data.lengths)
    said = data.tokens[texts & (data.tokens != END)]
    share = float((said == UNK).mean()) if len(said) else 0.0
    if share <= WARNED:
        return
    words = ", ".join(map(repr, islice(_unknown_words(dataset, data.layout.tokenizer), EXAMPLES)))
    found = (
        f"dataset: {share:.1%} of the tokens that the learner says are unknown to the env's "
        f"vocabulary, in words such as {words}"
    )
    if share > REFUSED:
        raise ValueError(
            f"{found}: these are dialogues of another domain or language; learn in the env that "
            "they were held in, or give this one a tokenizer that knows their words"
        )
    warnings.warn(f"{found}; a policy learns to say <unk> in their place", stacklevel=3)


def _unknown_words(dataset: Dataset, tokenizer: Tokenizer) -> Iterator[str]:
    """The words of a learner that are not in a vocabulary, each once."""
    said = (turn["text"] for dialogue in dataset for turn in dialogue["turns"] if turn["said"])
    words = dict.fromkeys(word for text in said for word in text.split())
    return (word for word in words if UNK in tokenizer.encode(word))


def loaded(dataset: Any) -> Any:
    """A dataset whose path or name was given; anything else as it is."""
    if not isinstance(dataset, str | Path):
        return dataset
    from dialgym import load_dataset

    return load_dataset(dataset)


def check_environment(dataset: Any, env_id: str | None) -> None:
    """Check that the dialogues of a `Dataset` were held in an environment.

    Args:
        dataset: to learn from; `TokenData` and `ActData` do not say where they come from.
        env_id: the full id; None where the env is none of dialgym's.

    Raises:
        ValueError: they are of another environment, or of several settings of it.
    """
    if env_id is None or not isinstance(dataset, Dataset):
        return
    collected_in, _ = dataset.environment()
    if collected_in != without_module(env_id):
        raise ValueError(
            f"data: expected dialogues of {env_id}, got some of {collected_in}; "
            "collect others, or learn in that environment"
        )
