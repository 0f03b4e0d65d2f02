"""Greedy decoding that does not repeat the learner's own utterances."""

import numpy as np
import pytest
import torch

from agents.decoding.repeats import unrepeated

YOU, USER, END = 3, 4, 2
A, B, C = 5, 6, 7


def choice(window, probabilities, least=0.1):
    padded = np.zeros((1, 16), np.int16)
    padded[0, : len(window)] = window
    row = torch.zeros(1, 8)
    for token, probability in probabilities.items():
        row[0, token] = probability
    return int(unrepeated(row, padded, np.array([len(window)]), YOU, least))


def test_a_first_utterance_is_the_likeliest():
    assert choice([YOU], {A: 0.9, B: 0.1}) == A


def test_what_was_said_before_gives_way_to_the_next_likeliest():
    said = [YOU, A, B, END, USER, C, END, YOU]
    assert choice(said, {A: 0.8, B: 0.15, C: 0.05}) == B


def test_only_what_begins_alike_is_a_repeat():
    said = [YOU, A, B, END, USER, C, END, YOU, C]
    assert choice(said, {B: 0.8, A: 0.2}) == B  # `C B` is new, though B was said after A


def test_what_others_said_may_be_said():
    said = [YOU, A, END, USER, C, END, YOU]
    assert choice(said, {C: 0.8, B: 0.2}) == C


def test_every_earlier_utterance_counts():
    said = [YOU, A, END, USER, C, END, YOU, B, END, USER, C, END, YOU]
    assert choice(said, {A: 0.5, B: 0.3, C: 0.2}) == C


def test_without_an_alternative_the_likeliest_is_repeated():
    said = [YOU, A, END, USER, C, END, YOU]
    assert choice(said, {A: 0.95, B: 0.05}) == A
    assert choice(said, {A: 0.95, B: 0.05}, least=0.05) == B


def test_bytes_of_two_tokens_are_no_token():
    said = [YOU, 0x0100, END, USER, C, END, YOU]
    assert choice(said, {1: 0.6, A: 0.4}) == 1


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
