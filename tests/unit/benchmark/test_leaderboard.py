"""Statistics of the leaderboard against slow versions, on made-up runs."""

import numpy as np
import pytest

from dialgym.benchmark.leaderboard import (
    Board,
    Contestant,
    Part,
    cost_of_score,
    difference,
    improvement,
    resampled,
)
from dialgym.benchmark.standings import as_markdown, compare, table, write_page
from dialgym.benchmark.submission import Submission
from tests.support.tiny_panel import TINY

IDS = ("dialgym/Wordle-20-v0", "dialgym/Wordle-200-v0")


def row(name, *means, spread=1.0, seeds=5, episodes=40, seed=0, way="drawn"):
    """A contestant whose runs have means about those, one for each environment."""
    rng = np.random.default_rng([seed, len(name), *name.encode()])
    parts = {
        env_id: Part(
            tuple(range(seeds)),
            mean + spread * rng.normal(size=(seeds, 1)) + rng.normal(size=(seeds, episodes)),
        )
        for env_id, mean in zip(IDS, means)
    }
    success = {env_id: np.full((seeds, episodes), 50.0) for env_id in parts}
    return Contestant(name, way, parts, {}, success)


def test_means_and_interquartile_means_are_those_of_runs():
    found = row("a", 10.0, 30.0)
    runs = [part.values[k].mean() for part in found.parts.values() for k in range(5)]
    assert found.estimate.value == pytest.approx(np.mean(runs))
    assert found.iqm.value == pytest.approx(np.mean(sorted(runs)[2:-2]))
    assert found.by_seed == pytest.approx(
        [np.mean([part.values[k].mean() for part in found.parts.values()]) for k in range(5)]
    )


def test_intervals_are_those_of_a_slow_bootstrap_of_runs():
    found = row("a", 10.0, 30.0)
    rng = np.random.default_rng(1)
    slow = []
    for _ in range(4000):
        means = []
        for part in found.parts.values():
            picked = [part.values[rng.integers(5)].mean() for _ in range(5)]
            means.append(np.mean(picked))
        slow.append(np.mean(means))
    assert found.estimate.interval == pytest.approx(np.percentile(slow, [2.5, 97.5]), abs=0.06)


def test_a_single_run_varies_by_its_episodes_and_a_bare_mean_not_at_all():
    values = np.random.default_rng(0).normal(size=(1, 400))
    means = resampled(values)
    assert means.shape == (2000, 1)
    assert means.std() == pytest.approx(1 / np.sqrt(400), rel=0.1)
    assert np.isnan(resampled(np.array([[3.0]]))).all()


def test_rows_whose_difference_holds_zero_are_tied():
    near = [row("aa", 10.0, 10.0), row("ab", 10.2, 10.0), row("worse", 2.0, 3.0)]
    board = Board.sorted(TINY, near, "score")
    assert board.rows[-1].name == "worse"
    assert board.ranks == [(1, 2), (1, 2), (3, 3)]
    assert [cells[0] for cells in table(board)] == ["1-2", "1-2", "3"]
    assert "a tie: the interval holds 0" in compare(board, "aa", "ab")
    assert "aa is better" in compare(board, "aa", "worse")
    assert "aa is better" in compare(board, "worse", "aa")


def test_a_row_that_lacks_environments_has_no_rank_and_does_not_move_others():
    rows = [row("whole", 5.0, 5.0), row("best-of-one", 90.0)]
    board = Board.sorted(TINY, rows, "score")
    assert [r.name for r in board.rows] == ["whole", "best-of-one"]
    assert board.ranks == [(1, 1)]
    assert [cells[0] for cells in table(board)] == ["1", "-"]


def test_runs_of_the_same_seeds_are_compared_in_pairs():
    """What is common to a seed, such as its dialogues, does not widen the interval."""
    first = row("a", 10.0, 30.0, spread=8.0)
    second = Contestant(
        "b", "drawn", {i: Part(p.seeds, p.values - 1.0) for i, p in first.parts.items()}
    )
    low, high = difference(first, second).interval
    assert (low, high) == pytest.approx((1.0, 1.0))
    others = {i: Part((5, 6, 7, 8, 9), p.values) for i, p in second.parts.items()}
    apart = difference(first, Contestant("b", "drawn", others))
    assert apart.interval[0] < 0 < apart.interval[1]
    assert difference(first, Contestant("c", "drawn", {"x": Part((0,), np.ones((1, 2)))})) is None


def test_probability_of_improvement_is_that_of_all_pairs():
    a, b = row("a", 10.0, 10.0), row("b", 10.5, 9.0)
    slow = []
    for env_id in IDS:
        x, y = (r.parts[env_id].values.mean(1) for r in (a, b))
        slow.append(np.mean([(i > j) + 0.5 * (i == j) for i in x for j in y]))
    found = improvement(a, b)
    assert found.value == pytest.approx(np.mean(slow))
    assert found.interval[0] <= found.value <= found.interval[1]
    assert improvement(a, row("c", 1.0, 1.0, seeds=1)) is None


def test_the_gap_of_a_panel_is_the_median_of_its_learners():
    rows = [row("a", 1.0, 1.0), row("b", 2.0, 2.0), row("s", 3.0, 3.0, way="scripted")]
    board = Board.sorted(TINY, rows, "score")
    from dialgym.benchmark.comparison import minimum_detectable_gap

    gaps = [minimum_detectable_gap(r.by_seed[:, None]) for r in rows[:2]]
    assert board.gap == pytest.approx(np.median(gaps))


def submission(curve, references=(-5.0, -1.0), **values):
    found = {"hashes": {"references": references}, "curve": curve, "way": "drawn", **values}
    return Submission(found, None)


def test_the_cost_of_a_score_is_where_the_smoothed_curve_reaches_it():
    curve = [[100 * k, 2.0 * k, -5.0 + 0.1 * k] for k in range(1, 60)]
    steps, seconds = cost_of_score(submission(curve), 90.0)
    slow = next(
        k for k in range(5, 60) if np.mean([curve[i][2] for i in range(k - 5, k)]) >= -1.4 - 1e-9
    )
    assert (steps, seconds) == (100 * slow, 2.0 * slow)
    assert cost_of_score(submission(curve[:20]), 90.0) is None
    assert cost_of_score(submission(curve, None), 90.0) is None


def test_pass_k_is_the_mean_over_runs():
    trials = [{"trials": {"drawn": [[True] * 4, [True, True, False, False]]}}, {"trials": {}}]
    rows = [submission([], **t) for t in trials]
    found = Contestant("a", "drawn", {}, {}, {}, rows)
    assert found.pass_k(1) == pytest.approx(0.75)
    assert found.pass_k(2) == pytest.approx((1 + 1 / 6) / 2)
    assert Contestant("a", "drawn", {}, {}, {}, rows[1:]).pass_k(1) is None


def test_the_page_needs_no_network_and_hostile_names_stay_text(tmp_path):
    board = Board.sorted(TINY, [row("<script>x</script>", 3.0, 4.0), row("b", 1.0, 2.0)], "score")
    write_page(tmp_path / "page.html", board)
    text = (tmp_path / "page.html").read_text("utf-8")
    assert "<script" not in text
    assert "&lt;script&gt;" in text
    assert "://" not in text
    assert text.count("<svg") >= 3
    assert "| 1 |" in as_markdown(board)


def test_an_empty_panel_says_so(tmp_path):
    board = Board.of(TINY, [])
    assert "No rows of version 1 yet" in as_markdown(board)
    write_page(tmp_path / "page.html", board)
