"""A rollout as sequences: whatever the env does, each decision is read after its own prefix."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.buffers.sequences import SequenceBuffer, minibatches
from agents.models.masking import TokenMasker
from agents.models.prefixes import lengths_of
from tests.support.toy_tokens import SYSTEM, box

L, N, T, V = 16, 4, 20, 9


def random_rollout(rng: np.random.Generator, slides: bool):
    """Observations (T, N, L) that grow, restart at random, and perhaps lose their beginning."""
    rows = [[int(rng.integers(1, V))] for _ in range(N)]
    observations, starts = np.zeros((T, N, L), np.int32), np.zeros((T, N), bool)
    starts[0] = rng.random(N) < 0.5
    for t in range(T):
        for n in range(N):
            if t and (rng.random() < 0.2 or len(rows[n]) > L - 4):
                rows[n] = rng.integers(1, V, rng.integers(1, 4)).tolist()
                starts[t, n] = rng.random() < 0.9  # an env may also forget without an end
            elif t:
                rows[n] = rows[n] + rng.integers(1, V, rng.integers(1, 4)).tolist()
                if slides and rng.random() < 0.2:
                    rows[n] = rows[n][-3:]
            observations[t, n, : len(rows[n])] = rows[n]
    return observations, starts


@pytest.mark.parametrize("seed", range(5))
def test_each_decision_is_read_beside_its_own_features(seed):
    """Others begin a new sequence; those of rows that rest are not looked at."""
    rng = np.random.default_rng(seed)
    observations, starts = random_rollout(rng, slides=False)
    features = np.zeros((T, N, 2), np.float32)
    features[0] = rng.random((N, 2))
    playing = rng.random((T, N)) < 0.8
    buffer = SequenceBuffer(T, box(L))
    for t in range(T):
        fresh = starts[t] | (rng.random(N) < 0.1)
        drawn = rng.random((N, 2))
        features[t] = np.where(
            fresh[:, None] & playing[t][:, None], drawn, features[t - 1] if t else drawn
        )
        lengths = lengths_of(torch.tensor(observations[t])).numpy()
        shown = np.where(playing[t][:, None] | (t == 0), features[t], -1.0).astype(np.float32)
        buffer.add(observations[t], lengths, starts[t], playing[t], shown)
    keep = playing | (np.arange(T) == 0)[:, None]
    sequences = buffer.sequences(keep, torch.device("cpu"))
    owner = np.repeat(np.arange(len(sequences.sizes)), sequences.sizes)
    found = sequences.features.numpy()[owner]
    assert np.array_equal(found, features.reshape(-1, 2)[sequences.steps])


@settings(max_examples=60)
@given(st.integers(0, 10**6), st.booleans(), st.integers(1, 200))
def test_each_decision_is_read_after_its_own_observation(seed, slides, most_tokens):
    rng = np.random.default_rng(seed)
    observations, starts = random_rollout(rng, slides)
    number = np.arange(T * N).reshape(T, N)
    keep = rng.random((T, N)) < 0.8
    keep[0, 0] = True
    buffer = SequenceBuffer(T, box(L))
    for t in range(T):
        lengths = lengths_of(torch.tensor(observations[t])).numpy()
        buffer.add(observations[t], lengths, starts[t], number=number[t])
    assert len(buffer) == T
    sequences = buffer.sequences(keep, torch.device("cpu"), number=number)
    assert sorted(sequences.columns["number"].tolist()) == sorted(number[keep].tolist())
    column = sequences.column(number)
    assert column.tolist() == sequences.columns["number"].tolist()
    grid = sequences.grid(column, number.shape)
    assert (grid == np.where(keep, number, 0)).all()

    read = []
    everything = rng.permutation(len(sequences.sizes))
    for part in sequences.parts(everything, most_tokens):
        assert part.tokens.numel() <= most_tokens or len(part.tokens) == 1
        width = part.tokens.shape[1]
        for at, row in zip(part.at.tolist(), part.rows.tolist(), strict=True):
            prefix = part.tokens[at // width, : at % width + 1].tolist()
            step = divmod(int(sequences.columns["number"][row]), N)
            assert prefix == observations[step][: len(prefix)].tolist()
            assert not observations[step][len(prefix) :].any()
            read.append(row)
    assert sorted(read) == list(range(len(sequences)))


def test_an_episode_is_one_sequence():
    buffer = SequenceBuffer(5, box(L))
    for t in range(1, 6):
        tokens = np.where(np.arange(L) < t, 7, 0)[None].repeat(2, 0)
        buffer.add(tokens, np.full(2, t), np.full(2, t == 1))
    sequences = buffer.sequences(np.ones((5, 2), bool), torch.device("cpu"))
    assert sequences.tokens.tolist() == [[7] * 5] * 2
    assert sequences.sizes.tolist() == [5, 5]
    [part] = sequences.parts(np.array([0, 1]), 1000)
    assert part.at.tolist() == list(range(10))


@given(st.lists(st.integers(1, 30), min_size=1), st.integers(1, 12), st.integers(0, 99))
def test_minibatches_deal_every_sequence_once_and_evenly(sizes, count, seed):
    sizes = np.array(sizes)
    batches = minibatches(sizes, count, np.random.default_rng(seed))
    assert len(batches) == count
    assert sorted(np.concatenate(batches).tolist()) == list(range(len(sizes)))
    for batch in batches:
        assert sizes[batch].sum() <= sizes.sum() / count + sizes.max()


def test_states_along_sequences_are_those_of_their_prefixes():
    rng = np.random.default_rng(0)
    masker = TokenMasker(box(L).automaton, SYSTEM)
    tokens = torch.tensor(rng.integers(1, V, (200, L)))
    after = masker.states_along(tokens)
    for length in range(1, L + 1):
        prefix = tokens[:, :length]
        expected = masker.states(prefix, torch.full((200,), length))
        assert after[:, length - 1].tolist() == expected.tolist()
    assert len(set(after.flatten().tolist())) > 2


def test_an_empty_choice_has_no_parts():
    buffer = SequenceBuffer(1, box(L))
    buffer.add(np.ones((1, L), int), np.array([L]), np.array([True]))
    sequences = buffer.sequences(np.ones((1, 1), bool), torch.device("cpu"))
    assert list(sequences.parts(np.zeros(0, np.int64), 10)) == []
    assert len(sequences.decisions(np.zeros(0, np.int64))) == 0


def test_nothing_kept_is_no_sequence():
    pytest.importorskip("torch")
    buffer = SequenceBuffer(1, box(L))
    buffer.add(np.ones((2, L), int), np.array([L, L]), np.array([True, True]))
    keep = np.array([[True, False]])
    assert len(buffer.sequences(keep, torch.device("cpu")).sizes) == 1
