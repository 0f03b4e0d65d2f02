"""Forbidden tokens have no probability, in one state and along whole sequences."""

import numpy as np
import pytest
import torch

from agents.models.masking import TokenMasker
from agents.models.prefixes import lengths_of
from dialgym.language.tokenizers import END, FIRST_TEXT
from tests.support.toy_policies import CLOSE, WINDOW, policy
from tests.support.toy_tokens import SYSTEM, USER, V, box

# Masks


def test_states_are_those_of_a_walk():
    automaton = box(WINDOW).automaton
    masker = TokenMasker(automaton, SYSTEM)
    rng = np.random.default_rng(0)
    start = [USER, 6, END, SYSTEM]
    rows = np.zeros((50, WINDOW), dtype=np.int64)
    states = []
    for row in rows:
        said = rng.integers(FIRST_TEXT, V, rng.integers(0, 4)).tolist()
        head = [*start, 7, 8, END] if rng.random() < 0.5 else []
        tokens = [*head, *start, *said][-WINDOW:]
        row[: len(tokens)] = tokens
        states.append(automaton.walk(said))
    tokens = torch.tensor(rows)
    assert masker.states(tokens, lengths_of(tokens)).tolist() == states
    assert masker(tokens, lengths_of(tokens)).tolist() == automaton.allowed[states].tolist()


def test_a_row_without_a_tag_is_the_start_of_an_utterance():
    masker = TokenMasker(box(WINDOW).automaton, SYSTEM)
    assert masker.states(torch.tensor([[USER, 6, 0]]), torch.tensor([2])).tolist() == [0]


def test_only_allowed_tokens_have_probability():
    p = policy()
    obs = torch.tensor([[SYSTEM, 0, 0, 0], [SYSTEM, 6, 0, 0], [SYSTEM, 6, 7, 0]])
    obs = torch.nn.functional.pad(obs, (0, WINDOW - 4))
    probabilities = p.get_distribution(obs).distribution.probs
    letters = torch.arange(V) >= FIRST_TEXT
    assert (probabilities[:2, ~letters] == 0).all()
    assert (probabilities[:2, letters] > 0).all()
    assert probabilities[2].tolist() == [0, 1, *[0] * (V - 2)]
    free = policy(mask=False).get_distribution(obs).distribution.probs
    assert (free > 0).all()
    by_hand = np.zeros((3, V), dtype=bool)
    by_hand[:, 2] = True
    assert p.get_distribution(obs, by_hand).distribution.probs[:, 2].tolist() == [1, 1, 1]


@pytest.mark.parametrize("whole", [False, True])
def test_gradients_stay_finite_where_one_token_is_allowed(whole):
    p, said = policy(), torch.tensor([END, END])
    if whole:
        allowed = torch.arange(V)[None] == said[:, None]
        tokens, at = torch.ones(2, 3, dtype=torch.int64), torch.tensor([1, 5])
        values, log_prob, entropy = p.evaluate_sequences(tokens, at, said, allowed)
    else:
        obs = torch.zeros(2, WINDOW, dtype=torch.int64)
        obs[:, :3] = torch.tensor([SYSTEM, 6, 7])
        values, log_prob, entropy = p.evaluate_actions(obs, said)
    assert log_prob.tolist() == entropy.tolist() == [0, 0]
    (values.sum() + log_prob.sum() + entropy.sum()).backward()
    assert all(torch.isfinite(q.grad).all() for q in p.parameters() if q.grad is not None)


# Whole sequences


@pytest.mark.parametrize("masked", [True, False])
def test_whole_sequences_give_what_each_observation_gives(masked):
    p, rng = policy(mask=False), np.random.default_rng(0)
    for head in (p.value_head.linear.weight, p.policy_head.weight):
        torch.nn.init.normal_(head)
    tokens = torch.tensor(rng.integers(1, V, (5, WINDOW)))
    at = torch.tensor(rng.permutation(5 * WINDOW)[:20])
    actions = torch.tensor(rng.integers(0, V, 20))
    allowed = torch.tensor(rng.random((20, V)) < 0.5)
    allowed[torch.arange(20), actions] = True
    rows = tokens[at // WINDOW] * (torch.arange(WINDOW) <= (at % WINDOW)[:, None])
    given_masks = allowed if masked else None
    expected = p.evaluate_actions(rows, actions, given_masks)
    got = p.evaluate_sequences(tokens, at, actions, given_masks)
    for one, other in zip(got, expected, strict=True):
        torch.testing.assert_close(one, other.flatten(), **CLOSE)
    torch.testing.assert_close(p.sequence_log_prob(tokens, at, actions, given_masks), got[1])
    with torch.autocast("cpu", torch.bfloat16):
        got = p.evaluate_sequences(tokens, at, actions, given_masks)
    assert [part.dtype for part in got] == [torch.float32] * 3
    torch.testing.assert_close(got[1], expected[1], atol=0.3, rtol=0.1)
