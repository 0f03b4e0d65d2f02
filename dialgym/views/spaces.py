"""Action and observation spaces of the views."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import gymnasium as gym
import numpy as np

from dialgym.language import Constraint, TokenAutomaton, Tokenizer, compile_constraint
from dialgym.language.text import UNKNOWN
from dialgym.tasks import Task


class TokenBox(gym.spaces.Box):
    """`Box(0, V-1, (L,), int32)`: a transcript as token ids, PAD on the right.

    Beside what a Box has, it tells a policy what the tokens are.

    Attributes:
        vocab_size: V.
        window: L.
        tokenizer: what the ids mean.
        learner_tag: the token that opens the learner's utterances.
        constraint: what the learner may ever say; None where that depends on more than the
            utterance so far (then only the env's `action_masks()` knows it).
        limits: most tokens of an utterance, ``<end>`` included, by speaker; those not named have
            no limit.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        window: int,
        learner_tag: int,
        constraint: Constraint | None = None,
        limits: Mapping[str, int] | None = None,
    ) -> None:
        super().__init__(0, tokenizer.vocab_size - 1, (window,), np.int32)
        self.vocab_size = tokenizer.vocab_size
        self.window = window
        self.tokenizer = tokenizer
        self.learner_tag = learner_tag
        self.constraint = constraint
        self.limits = dict(limits or {})

    @cached_property
    def automaton(self) -> TokenAutomaton | None:
        """The constraint over tokens, compiled on first use."""
        if self.constraint is None:
            return None
        return compile_constraint(self.constraint, self.tokenizer)

    def __getstate__(self) -> dict[str, Any]:
        """Without the compiled automaton, which is quickly made again."""
        return {key: value for key, value in self.__dict__.items() if key != "automaton"}


def utterance_spaces(task: Task, party: str) -> tuple[gym.spaces.Text, gym.spaces.Text]:
    """Observation and action space: what `party` sees of a dialogue, and what it can say."""
    chars = task.facts.charset + UNKNOWN
    frame = "".join(task.parties) + ": \n"
    longest = sum(
        count * (len(f"{speaker}: \n") + task.facts.limit(speaker))
        for speaker, count in task.facts.heard[party].items()
    )
    seen = gym.spaces.Text(longest, min_length=0, charset=frozenset(chars + frame))
    said = gym.spaces.Text(
        task.facts.limit(party), min_length=0, charset=frozenset(task.facts.charset)
    )
    return seen, said


def maskable(masks: np.ndarray, action_space: gym.Space) -> np.ndarray:
    """Action masks in the form that sb3-contrib's MaskablePPO reads.

    Args:
        masks: (..., A) bool.
        action_space: of one dialogue.

    Returns:
        The masks as they are for `Discrete`; for `MultiBinary` (..., 2A) bool, of each entry of an
        action whether it can be 0, which is always so, and whether it can be 1.
    """
    if not isinstance(action_space, gym.spaces.MultiBinary):
        return masks
    return np.stack([np.ones_like(masks), masks], -1).reshape(*masks.shape[:-1], -1)


def with_features(tokens: gym.Space, task: Task, party: str) -> gym.spaces.Dict:
    """``Dict(tokens, features)``: a party's tokens, and the array that it is given beside them.

    Raises:
        ValueError: the task gives it none.
    """
    form = task.facts.features.get(party)
    if form is None:
        raise ValueError(
            f"features of {task.name}: expected True only where the {party} is given some (see "
            "Facts.features); it is given none. Leave features= out."
        )
    box = gym.spaces.Box(form.low, form.high, form.shape, np.dtype(form.dtype))  # type: ignore[arg-type]
    return gym.spaces.Dict({"tokens": tokens, "features": box})
