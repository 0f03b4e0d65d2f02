"""Means, intervals and measured speeds, against closed forms and slow definitions."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dialgym
from benchmarks.environments.timing import Figure, cost, machine, rate
from benchmarks.environments.workloads import batched_tokens, games, single_turns
from dialgym.experiments.statistics import Resampled, _statistics, bootstrap, interval, iqm

# Statistics


@given(st.lists(st.integers(-6, 0), min_size=1, max_size=60))
def test_iqm_is_the_mean_without_the_outer_quarters(values):
    cut = int(0.25 * len(values))
    assert iqm(np.array(values)) == pytest.approx(np.mean(sorted(values)[cut : len(values) - cut]))


def test_iqm_of_known_values():
    assert iqm(np.array([[1.0, 2.0], [3.0, 100.0]])) == 2.5
    assert iqm(np.array([5.0])) == 5.0


@given(st.lists(st.integers(0, 9), min_size=4, max_size=4).filter(any))
def test_statistics_of_counts_are_those_of_the_values(counts):
    levels = np.array([-3.0, -1.0, 0.5, 2.0])
    got = _statistics(levels, np.array([counts]))
    values = np.repeat(levels, counts)
    assert got.mean[0] == pytest.approx(values.mean())
    assert got.iqm[0] == pytest.approx(iqm(values))


def test_interval_of_a_proportion_is_the_binomial_one():
    values = np.repeat([0.0, 1.0], [300, 700])[None]
    low, high = interval(bootstrap(values, 20_000).mean)
    half = 1.96 * np.sqrt(0.3 * 0.7 / 1000)
    assert low == pytest.approx(0.7 - half, abs=0.002)
    assert high == pytest.approx(0.7 + half, abs=0.002)


def test_strata_are_resampled_by_themselves():
    values = np.repeat([[0.0], [1.0]], 50, axis=1)
    assert interval(bootstrap(values).mean) == (0.5, 0.5)
    assert interval(bootstrap(values.reshape(1, -1)).mean)[0] < 0.45


def test_bootstrap_is_reproducible_in_chunks_and_fits_its_memory(monkeypatch):
    values = np.random.default_rng(0).normal(size=(2, 30))
    whole = bootstrap(values, 500)
    monkeypatch.setattr("dialgym.experiments.statistics.CELLS", 60 * 7)
    chunked = bootstrap(values, 500)
    assert isinstance(chunked, Resampled)
    assert chunked.mean.shape == (500,)
    assert interval(chunked.mean) == pytest.approx(interval(whole.mean), abs=0.08)
    assert (bootstrap(values, 500).mean == chunked.mean).all()


# Speed


def test_figures_compare():
    slow = Figure("slow", 50.0, "/s")
    fast = Figure("fast", 100.0, "/s", 80, slow, "slow")
    assert fast.ratio == 2
    assert fast.holds
    assert slow.holds is None
    assert Figure("time", 0.7, "s", 0.6).holds is False


def test_rates_and_costs_are_measured():
    work = single_turns({"words": 20})
    assert rate(work, repeats=1, seconds=0.01) > 0
    assert cost(work, repeats=1) > 0
    assert batched_tokens({"words": 20}, masks=True)() == 48 * 1024
    assert {"CPU", "cores", "Python"} < machine().keys()


def test_optimal_finds_every_word():
    needed = games({"words": 50, "guesses": "answers"})
    assert len(needed) == 50
    assert 1 < np.mean(needed) < 3


@pytest.mark.slow
def test_speed_prints_and_writes_its_figures(tmp_path, capsys):
    from benchmarks.environments.__main__ import main

    words = Path(dialgym.__file__).parent / "tasks" / "wordle" / "words" / "answers.txt"
    main(answers=words, repeats=1, seconds=0.01, json=tmp_path / "speed.json")
    assert "CartPole-v1, gym.make" in capsys.readouterr().out
    written = json.loads((tmp_path / "speed.json").read_text())
    assert {"machine", "figures"} <= written.keys()
    assert all(figure["value"] > 0 for figure in written["figures"])
