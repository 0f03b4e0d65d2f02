"""Observations that are beginnings of others are read once; padding on either side is the same."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.models.gpt import buckets
from agents.models.prefixes import group_prefixes, last_hidden, left_aligned, lengths_of
from dialgym.language.tokenizers import FIRST_TEXT
from tests.support.toy_policies import CLOSE, WINDOW, plain, policy, random_rows, tiny
from tests.support.toy_tokens import V

# Prefix grouping


@settings(max_examples=50)
@given(st.integers(0, 10**6), st.integers(1, 40))
def test_groups_are_maximal_and_own_their_beginnings(seed, b):
    rows = random_rows(np.random.default_rng(seed), b)
    ends = lengths_of(torch.tensor(rows)).numpy()
    groups = group_prefixes(rows, ends)
    starts = [tuple(row[:n]) for row, n in zip(rows, ends, strict=True)]
    maximal = {s for s in starts if not any(t != s and t[: len(s)] == s for t in starts)}
    assert sorted(starts[row] for row in groups.maximal) == sorted(maximal)
    for start, owner in zip(starts, groups.owner, strict=True):
        assert starts[groups.maximal[owner]][: len(start)] == start


def test_groups_with_a_large_vocabulary():
    rows = np.array([[70000, 300, 0], [70000, 0, 0], [300, 70000, 1], [300, 0, 0]])
    groups = group_prefixes(rows, np.array([2, 1, 3, 1]))
    assert groups.maximal[groups.owner].tolist() == [0, 0, 2, 2]


@pytest.mark.parametrize("group", [True, False])
def test_prefix_grouped_equals_naive_with_gradients(group):
    model = tiny()
    rows = torch.tensor(random_rows(np.random.default_rng(0), 60))
    torch.testing.assert_close(
        last_hidden(model, rows, group=group, smallest=16), plain(model, rows), **CLOSE
    )
    grads = []
    for hidden in (last_hidden(model, rows, group=group, smallest=16), plain(model, rows)):
        model.zero_grad()
        hidden.square().sum().backward()
        grads.append([p.grad.clone() for p in model.parameters()])
    for fast, slow in zip(*grads, strict=True):
        torch.testing.assert_close(fast, slow, atol=1e-4, rtol=1e-3)


def test_grouping_reads_an_episode_once():
    model, read = tiny(), []
    model.register_forward_hook(lambda m, args, out: read.append(args[0].shape))
    episode = torch.tril(torch.ones(WINDOW, WINDOW, dtype=torch.int64))
    last_hidden(model, torch.cat([episode, 2 * episode]))
    assert read == [(2, WINDOW)]


@given(st.lists(st.integers(1, 50), min_size=1), st.integers(1, 200))
def test_buckets_hold_every_row_once_and_waste_little(lengths, smallest):
    lengths = np.array(lengths)
    parts = list(buckets(lengths, 0.5, smallest))
    assert sorted(np.concatenate(parts).tolist()) == list(range(len(lengths)))
    for part in parts:
        held = len(part) * lengths[part].max()
        assert lengths[part].min() >= 0.5 * lengths[part].max() or held < smallest + 50


# Padding


def to_the_right(rows: np.ndarray) -> np.ndarray:
    """Rows padded on the right, padded on the left."""
    ends = WINDOW - (rows != 0).sum(1)
    return np.stack([np.roll(row, n) for row, n in zip(rows, ends, strict=True)])


@given(st.integers(0, 10**6), st.integers(1, 20))
def test_left_padding_is_moved_and_right_padding_left_alone(seed, b):
    rows = random_rows(np.random.default_rng(seed), b)
    for padded in (rows, to_the_right(rows)):
        assert left_aligned(torch.tensor(padded)).tolist() == rows.tolist()


@settings(max_examples=10)
@given(st.integers(0, 10**6), st.booleans())
def test_the_side_of_the_padding_does_not_matter(seed, shared):
    rng = np.random.default_rng(seed)
    p = policy(share_features_extractor=shared)
    for head in (p.value_head.linear.weight, p.policy_head.weight):
        torch.nn.init.normal_(head)
    rows, actions = random_rows(rng, 6, V), torch.tensor(rng.integers(FIRST_TEXT, V, 6))
    left, right = torch.tensor(to_the_right(rows)), torch.tensor(rows)
    mixed = torch.where(torch.tensor(rng.random((6, 1)) < 0.5), left, right)
    for padded in (left, mixed):
        for one, other in zip(
            p.evaluate_actions(padded, actions), p.evaluate_actions(right, actions), strict=True
        ):
            torch.testing.assert_close(one, other, **CLOSE)
        with torch.no_grad():
            for one, other in zip(p(padded, True), p(right, True), strict=True):
                torch.testing.assert_close(one, other, **CLOSE)
            torch.testing.assert_close(p.predict_values(padded), p.predict_values(right), **CLOSE)
        said = p.predict(padded.numpy(), deterministic=True)[0]
        assert said.tolist() == p.predict(rows, deterministic=True)[0].tolist()
