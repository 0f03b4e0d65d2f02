"""Sets of rows of large databases answer as bit sets do, and large domains play as small ones."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.environments.large_domain import write_domain
from dialgym.rollouts import Player
from dialgym.tasks import bitsets
from dialgym.tasks.bitsets import ColumnSets, RowSet, first, indices
from dialgym.tasks.slot_filling import SlotFilling
from dialgym.tasks.slot_filling.domain import database

CELLS = st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=40)


def both(cells, name="slot"):
    """The column as bit sets and as sets of rows."""
    return ColumnSets(cells, name), ColumnSets(cells, name, large=True)


def agree(plain, rows):
    assert indices(plain) == indices(rows)
    assert plain.bit_count() == rows.bit_count()
    assert bool(plain) == bool(rows)
    assert not plain or first(plain) == first(rows)


@given(CELLS, st.randoms())
def test_sets_of_rows_are_joined_as_bit_sets_are(cells, random):
    others = random.sample(cells, len(cells))
    (p, r), (q, s) = both(cells), both(others, "other")
    whole, all_rows = (1 << len(cells)) - 1, RowSet.of_all(len(cells))
    for first_value in "abd":
        for second in "abd":
            agree(p[first_value] & q[second], r[first_value] & s[second])
            agree(p[first_value] & ~q[second], r[first_value] & ~s[second])
            agree((p[first_value] & q[second]) & p["a"], (r[first_value] & s[second]) & r["a"])
            agree(p["a"] & (q[second] & p["b"]), r["a"] & (s[second] & r["b"]))
        agree(whole & p[first_value], all_rows & r[first_value])
        agree(p[first_value] & whole, r[first_value] & all_rows)
        agree(whole & ~p[first_value], all_rows & ~r[first_value])
        assert (all_rows & r[first_value] == all_rows) == (whole & p[first_value] == whole)


@pytest.mark.parametrize("env", [1, 6])
def test_a_large_domain_plays_as_a_small_one(tmp_path, monkeypatch, env):
    path = write_domain(tmp_path, 2000, 300)
    jobs = [(0, episode) for episode in range(40)]

    def transcripts():
        task = SlotFilling(domain=path, env=env)
        played = list(Player(task, "handcrafted", record=True).play(jobs))
        kind = type(task.domain.database.everything)
        acts = task.acts["system"]
        state = task.initial(np.random.default_rng(3))
        for text in (state.planned[0], 'inform(name="none")', "hello()"):
            task.speak(state, text, np.random.default_rng(4))
        return kind, played[0].turns.text, played[0].returns.tolist(), acts.observe(state).tolist()

    kind, *small = transcripts()
    assert kind is int
    monkeypatch.setattr(database, "LARGE", 1000)
    kind, *large = transcripts()
    assert kind is RowSet
    assert small == large


@pytest.mark.slow
def test_a_million_rows(tmp_path):
    """Beside an ordinary domain in the same run; see `benchmarks.environments.large_domain`."""
    import resource
    from time import process_time

    path = write_domain(tmp_path, 1_000_000, 5_000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # of the tests before it
    begun = process_time()
    task = SlotFilling(domain=path, env=1)
    made = process_time() - begun
    assert made < 60
    assert len(task.domain.database) > bitsets.LARGE

    def rate(played):
        player = Player(played, "handcrafted")
        list(player.play([(1, episode) for episode in range(64)]))
        begun = process_time()
        list(player.play([(0, episode) for episode in range(1000)]))
        return 1000 / (process_time() - begun)

    assert rate(task) > 0.25 * rate(SlotFilling(env=1))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 2 * 2**20
