"""Only new tokens are computed in a rollout, with the results of computing all."""

import numpy as np
import pytest
import torch

from agents.models.cache import weights_version
from agents.models.observations import Observed
from agents.models.rollout_cache import RolloutCache, RolloutCaches
from tests.support.by_day import by_day
from tests.support.toy_policies import CLOSE, WINDOW, plain, policy, random_rows, tiny
from tests.support.toy_tokens import V


def test_cached_equals_plain_for_any_sequence_of_batches():
    model, rng = tiny(), np.random.default_rng(1)
    caches = RolloutCaches(model, capacity=2)
    rows = {b: random_rows(rng, b) for b in (1, 4, 7)}
    for _ in range(60):
        b = rng.choice([1, 4, 7])
        changed = rng.random(b) < 0.5
        rows[b][changed] = random_rows(rng, b)[changed]
        obs = torch.tensor(rows[b])
        hidden = caches.read(Observed.of(obs))
        torch.testing.assert_close(hidden, plain(model, obs), **CLOSE)
    assert len(caches.caches) == 2


def test_only_new_tokens_are_computed():
    caches = RolloutCaches(tiny())
    rows = torch.ones(3, WINDOW, dtype=torch.int64)
    for n in range(1, WINDOW + 1):
        caches.read(Observed.of(rows * (torch.arange(WINDOW) < n)))
    assert caches.caches[3, torch.float32].computed == 3 * WINDOW


PIECES = [(1, 0), (10, 0), (1000, 0), (1000, 20), (1000, 999)]


@pytest.mark.parametrize(("most", "spare"), by_day(PIECES, (10, 0), (1000, 20)))
def test_dialogues_that_go_on_or_begin_are_read_together_in_pieces(most, spare):
    """Each row gets a token, an answer, or another dialogue; what is new is read once."""
    model, rng, read = tiny(), np.random.default_rng(0), []
    cache, extend = RolloutCache(model, 9), model.extend
    cache.max_tokens, cache.kv.spare = most, spare
    model.extend = lambda new, *where: read.append(len(new)) or extend(new, *where)
    rows = np.zeros((9, WINDOW), np.int64)
    for _ in range(25):
        new = 0
        for row in rows:
            known, grown = np.count_nonzero(row), rng.choice([1, 1, 1, 4])
            if known in (0, WINDOW) or rng.random() < 0.2:
                known, row[:] = 0, 0
                grown = rng.integers(1, 9)
            end = min(known + grown, WINDOW)
            row[known:end] = rng.integers(1, V, end - known)
            new += end - known
        obs, before = torch.tensor(rows), cache.computed
        read.clear()
        hidden = cache.read(Observed.of(obs))
        torch.testing.assert_close(hidden, plain(model, obs), **CLOSE)
        assert sum(read) == cache.computed - before <= new
        assert max(read) <= most + WINDOW
        assert most < 1000 or len(read) == 1


def test_rows_that_add_unequal_numbers_are_one_group_where_padding_is_cheap():
    cache, counts = tiny().new_cache(4), np.array([1, 1, 3, 5])
    assert len(cache.plan(counts, np.arange(4)).groups) == 3
    cache.spare = 4 * 5 - 10
    assert len(cache.plan(counts, np.arange(4)).groups) == 1
    cache.spare -= 1
    assert len(cache.plan(counts, np.arange(4)).groups) == 3


def test_whatever_changes_the_weights_changes_their_version():
    model, versions = tiny(), []
    weight = model.blocks[0].attn.qkv.weight
    for change in (
        lambda: None,
        lambda: weight.add_(1),
        lambda: setattr(weight, "data", weight.data.clone()),
        lambda: setattr(model.blocks[0].attn.qkv, "weight", torch.nn.Parameter(weight.clone())),
        lambda: setattr(model.blocks[1], "mlp", torch.nn.Linear(16, 16)),
    ):
        with torch.no_grad():
            change()
        versions.append(weights_version(model))
    assert weights_version(model) == versions[-1]
    with torch.autocast("cpu", torch.bfloat16):
        versions.append(weights_version(model))
    assert len(set(versions)) == len(versions)


def test_each_precision_has_a_cache_of_its_own():
    caches, rows = RolloutCaches(tiny()), torch.ones(2, 3, dtype=torch.int64)
    exact = caches.read(Observed.of(rows))
    with torch.autocast("cpu", torch.bfloat16):
        rounded = caches.read(Observed.of(rows))
    assert exact.dtype == rounded.dtype == torch.float32
    assert not torch.equal(exact, rounded)
    dtypes = {key: cache.kv.keys.dtype for key, cache in caches.caches.items()}
    assert dtypes == {(2, d): d for d in (torch.float32, torch.bfloat16)}


def test_an_update_of_the_weights_is_noticed():
    p = policy(mask=False)
    obs = torch.tensor(random_rows(np.random.default_rng(0), 4))
    with torch.no_grad():
        before = p.predict_values(obs)
        p.value_head.linear.bias += 1.0
        p.backbone.wte.weight += torch.randn_like(p.backbone.wte.weight)
        p.value_head.linear.weight += 1.0
        after = p.predict_values(obs)
        assert not torch.allclose(before, after)
        torch.testing.assert_close(after, p.value_head(plain(p.backbone, obs)), **CLOSE)
