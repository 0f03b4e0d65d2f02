"""Greedy decoding that does not repeat the learner's own utterances."""

import numpy as np
import pytest
import torch

from agents.decoding.repeats import unrepeated

YOU, USER, END = 3, 4, 2
A, B, C = 5, 6, 7


SAID_A = [YOU, A, END, USER, C, END, YOU]
CASES = {
    "a first utterance is the likeliest": ([YOU], {A: 0.9, B: 0.1}, A),
    "what was said gives way to the next likeliest": (
        [YOU, A, B, END, USER, C, END, YOU], {A: 0.8, B: 0.15, C: 0.05}, B,
    ),
    "only what begins alike is a repeat": (  # `C B` is new, though B was said after A
        [YOU, A, B, END, USER, C, END, YOU, C], {B: 0.8, A: 0.2}, B,
    ),
    "what others said may be said": (SAID_A, {C: 0.8, B: 0.2}, C),
    "every earlier utterance counts": (
        [YOU, A, END, USER, C, END, YOU, B, END, USER, C, END, YOU], {A: 0.5, B: 0.3, C: 0.2}, C,
    ),
    "without an alternative the likeliest is repeated": (SAID_A, {A: 0.95, B: 0.05}, A),
    "an alternative may be less likely": (SAID_A, {A: 0.95, B: 0.05}, B, 0.05),
    "bytes of two tokens are no token": (
        [YOU, 0x0100, END, USER, C, END, YOU], {1: 0.6, A: 0.4}, 1,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_what_is_said(case):
    window, probabilities, expected, *least = case
    padded = np.zeros((1, 16), np.int16)
    padded[0, : len(window)] = window
    row = torch.zeros(1, 8)
    row[0, list(probabilities)] = torch.tensor(list(probabilities.values()))
    assert unrepeated(row, padded, np.array([len(window)]), YOU, *(least or [0.1])) == expected


@pytest.mark.parametrize("least", [0.0, -1, 1.5])
def test_refuses_what_is_no_probability(least):
    import dialgym
    from agents import GPTPolicy

    space = dialgym.make_vec("dialgym/Wordle-20-v0", num_envs=1)
    with pytest.raises(ValueError, match="avoid_repeats: expected a probability"):
        GPTPolicy(
            space.single_observation_space,
            space.single_action_space,
            lambda _: 0.1,
            avoid_repeats=least,
        )
