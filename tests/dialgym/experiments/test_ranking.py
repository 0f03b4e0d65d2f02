"""Statistics of the leaderboard against slow versions, on made-up runs."""

import json
from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest

from dialgym.experiments.pages import _scripted, write_ranking
from dialgym.experiments.panel import panel_named
from dialgym.experiments.panel_tables import (
    compare_rows,
    costs_as_markdown,
    panel_costs,
    ranking_as_markdown,
    ranking_caption,
    ranking_rows,
)
from dialgym.experiments.pydial_ranking import has_rows, ranking_of_csv, training_seconds
from dialgym.experiments.ranking import (
    RankedPolicy,
    Ranking,
    SeedScores,
    difference,
    improvement,
)
from dialgym.experiments.row import ExperimentRow
from dialgym.experiments.row_files import PyDialRow
from dialgym.experiments.rules import rules_of
from dialgym.experiments.statistics import minimum_detectable_gap
from dialgym.registry import entry_of
from tests.support.older_rows import OTHER
from tests.support.tiny_panel import TINY

IDS = ("dialgym/Wordle-20-v0", "dialgym/Wordle-200-v0")


def row(name, *means, spread=1.0, seeds=5, episodes=40, seed=0, way="drawn"):
    """A contestant whose runs have means about those, one for each environment."""
    rng = np.random.default_rng([seed, len(name), *name.encode()])
    parts = {
        env_id: SeedScores(
            tuple(range(seeds)),
            mean + spread * rng.normal(size=(seeds, 1)) + rng.normal(size=(seeds, episodes)),
        )
        for env_id, mean in zip(IDS, means)
    }
    success = {env_id: np.full((seeds, episodes), 50.0) for env_id in parts}
    return RankedPolicy(name, way, parts, {}, success)


def test_means_and_interquartile_means_are_those_of_runs():
    found = row("a", 10.0, 30.0)
    runs = [part.values[k].mean() for part in found.scores.values() for k in range(5)]
    assert found.estimate.value == pytest.approx(np.mean(runs))
    assert found.iqm.value == pytest.approx(np.mean(sorted(runs)[2:-2]))
    assert found.by_seed == pytest.approx(
        [np.mean([part.values[k].mean() for part in found.scores.values()]) for k in range(5)]
    )


def test_intervals_are_those_of_students_t_over_runs():
    stats = pytest.importorskip("scipy.stats")
    found = row("a", 10.0)
    (part,) = found.scores.values()
    means = part.values.mean(1)
    low, high = stats.t.interval(0.95, 4, means.mean(), stats.sem(means))
    assert found.estimate.interval == pytest.approx((low, high))
    assert not found.is_of_episodes
    assert row("b", 10.0, seeds=1).is_of_episodes


def test_an_interval_over_the_episodes_of_one_run_is_marked():
    board = Ranking.sorted(TINY, [row("one", 10.0, 10.0, seeds=1), row("five", 1.0, 1.0)], "score")
    assert [cells[2].endswith("]†") for cells in ranking_rows(board)] == [True, False]
    assert "†: over the episodes of the one run" in ranking_caption(board)


def test_ranks_of_many_equal_rows_are_seldom_apart():
    """One pair in twenty is, by itself; one table in twenty, with Holm's correction."""
    wrong, alone = [], []
    for k in range(60):
        rows = [row(name, 5.0, 5.0, episodes=1, seed=k) for name in "abcdefgh"]
        board = Ranking.sorted(TINY, rows, "score")
        wrong.append(board.ranks != [(1, 8)] * 8)
        found = [difference(a, b) for a, b in combinations(rows, 2)]
        alone.append(any(gap.p_value <= 0.05 for gap in found))
    assert np.mean(wrong) <= 0.1
    assert np.mean(alone) > 0.3


def test_rows_whose_difference_holds_zero_are_tied():
    near = [row("aa", 10.0, 10.0), row("ab", 10.2, 10.0), row("worse", 2.0, 3.0)]
    board = Ranking.sorted(TINY, near, "score")
    assert board.rows[-1].name == "worse"
    assert board.ranks == [(1, 2), (1, 2), (3, 3)]
    assert [cells[0] for cells in ranking_rows(board)] == ["1-2", "1-2", "3"]
    assert "a tie: the interval holds 0" in compare_rows(board, "aa", "ab")
    assert "aa is better" in compare_rows(board, "aa", "worse")
    assert "aa is better" in compare_rows(board, "worse", "aa")


def test_means_of_returns_say_that_environments_have_units_of_their_own():
    rows = [row("aa", 10.0, 10.0), row("ab", 2.0, 3.0)]
    for metric, said in (("return", True), ("score", False)):
        board = Ranking.sorted(TINY, rows, metric)
        compared, caption = compare_rows(board, "aa", "ab"), ranking_caption(board)
        assert ("Over 2 environments, each in its own unit, the difference" in compared) == said
        assert ("the mean over environments, each in its own unit;" in caption) == said


def test_a_row_that_lacks_environments_has_no_rank_and_does_not_move_others():
    rows = [row("whole", 5.0, 5.0), row("best-of-one", 90.0)]
    board = Ranking.sorted(TINY, rows, "score")
    assert [r.name for r in board.rows] == ["whole", "best-of-one"]
    assert board.ranks == [(1, 1)]
    assert [cells[0] for cells in ranking_rows(board)] == ["1", "-"]


def test_runs_of_the_same_seeds_are_compared_in_pairs():
    """What is common to a seed, such as its dialogues, does not widen the interval."""
    first = row("a", 10.0, 30.0, spread=8.0)
    less = np.array([[0.9], [1.0], [1.1], [0.9], [1.1]])
    second = RankedPolicy(
        "b", "drawn", {i: SeedScores(p.seeds, p.values - less) for i, p in first.scores.items()}
    )
    low, high = difference(first, second).estimate.interval
    assert (low, high) == pytest.approx((1.0, 1.0), abs=0.1)
    others = {i: SeedScores((5, 6, 7, 8, 9), p.values) for i, p in second.scores.items()}
    apart = difference(first, RankedPolicy("b", "drawn", others))
    assert apart.estimate.low < 0 < apart.estimate.high
    assert (
        difference(first, RankedPolicy("c", "drawn", {"x": SeedScores((0,), np.ones((1, 2)))}))
        is None
    )


def test_an_interval_of_a_difference_is_that_of_students_t():
    stats = pytest.importorskip("scipy.stats")
    x, y = (row(name, 5.0, seeds=4).scores[IDS[0]].values for name in "ab")
    a = RankedPolicy("a", "drawn", {IDS[0]: SeedScores((0, 1, 2, 3), x)})
    b = RankedPolicy("b", "drawn", {IDS[0]: SeedScores((4, 5, 6, 7), y)})
    welch = stats.ttest_ind(x.mean(1), y.mean(1), equal_var=False).confidence_interval()
    assert difference(a, b).estimate.interval == pytest.approx((welch.low, welch.high))
    paired = RankedPolicy("b", "drawn", {IDS[0]: SeedScores((0, 1, 2, 3), y)})
    pairs = stats.ttest_rel(x.mean(1), y.mean(1)).confidence_interval()
    assert difference(a, paired).estimate.interval == pytest.approx((pairs.low, pairs.high))


def test_equal_rows_of_three_runs_are_seldom_called_different():
    found = [
        difference(row("a", 5.0, 5.0, seeds=3, seed=k), row("b", 5.0, 5.0, seeds=3, seed=k))
        for k in range(400)
    ]
    different = np.mean([gap.p_value <= 0.05 for gap in found])
    assert different < 0.09


def test_probability_of_improvement_is_that_of_all_pairs():
    a, b = row("a", 10.0, 10.0), row("b", 10.5, 9.0)
    slow = []
    for env_id in IDS:
        x, y = (r.scores[env_id].values.mean(1) for r in (a, b))
        slow.append(np.mean([(i > j) + 0.5 * (i == j) for i in x for j in y]))
    found = improvement(a, b)
    assert found.value == pytest.approx(np.mean(slow))
    assert found.low <= found.value <= found.high
    assert improvement(a, row("c", 1.0, 1.0, seeds=1)) is None


def test_the_gap_of_a_panel_is_the_median_of_its_learners():
    rows = [row("a", 1.0, 1.0), row("b", 2.0, 2.0), row("s", 3.0, 3.0, way="scripted")]
    board = Ranking.sorted(TINY, rows, "score")
    gaps = [minimum_detectable_gap(r.by_seed[:, None]) for r in rows[:2]]
    assert board.gap == pytest.approx(np.median(gaps))


def learning_row(curve, references=(-5.0, -1.0), **values):
    found = {"hashes": {"references": references}, "curve": curve, "way": "drawn", **values}
    return ExperimentRow(found, None)


def test_pass_k_is_the_mean_over_runs():
    trials = [{"trials": {"drawn": [[True] * 4, [True, True, False, False]]}}, {"trials": {}}]
    rows = [learning_row([], **t) for t in trials]
    found = RankedPolicy("a", "drawn", {}, {}, {}, rows)
    assert found.pass_k(1) == pytest.approx(0.75)
    assert found.pass_k(2) == pytest.approx((1 + 1 / 6) / 2)
    assert RankedPolicy("a", "drawn", {}, {}, {}, rows[1:]).pass_k(1) is None


def test_the_page_needs_no_network_and_hostile_names_stay_text(tmp_path):
    board = Ranking.sorted(TINY, [row("<script>x</script>", 3.0, 4.0), row("b", 1.0, 2.0)], "score")
    write_ranking(tmp_path / "page.html", board)
    text = (tmp_path / "page.html").read_text("utf-8")
    assert "<script" not in text
    assert "&lt;script&gt;" in text
    assert "://" not in text
    assert text.count("<svg") >= 3
    assert "| 1 |" in ranking_as_markdown(board)


def test_scripted_policies_stand_beside_learning_curves():
    def of(way, *returns):
        stats = [{"statistics": {way: {"return": r}}} for r in returns]
        rows = [SimpleNamespace(id="a", actions=way, values=each) for each in stats]
        return SimpleNamespace(name=way, actions=way, rows=rows)

    board = SimpleNamespace(rows=[of("scripted", -1.0, -2.0), of("drawn", 5.0)])
    assert _scripted(board, "a") == {"scripted": -1.5}
    assert _scripted(board, "b") == {}


def test_an_empty_panel_says_so(tmp_path):
    board = Ranking.of(TINY, [])
    assert "No rows of version 1 yet" in ranking_as_markdown(board)
    write_ranking(tmp_path / "page.html", board)


def made(name, source="as named", rules=None):
    part = {"returns": [-2.0, -3.0], "solved": [1, 0], "lengths": [2, 3]}
    values = {
        "name": name,
        "id": IDS[0],
        "seed": 0,
        "way": "scripted",
        "episodes": {"scripted": part},
        "trials": {},
        "cost": {},
        "curve": [],
        "hashes": {"references": [-5.0, -1.0], "source": source},
    }
    if rules is not None:
        values["hashes"]["rules"] = rules._asdict()
    return ExperimentRow(values, None)


def test_what_stands_in_has_a_table_of_its_own():
    boards = Ranking.all_of(TINY, [made("a"), made("b", "built-in"), made("c")])
    assert [board.title for board in boards] == ["tiny", "tiny (built-in)"]
    assert [[row.name for row in board.rows] for board in boards] == [["a", "c"], ["b"]]
    assert "## tiny (built-in)" in ranking_as_markdown(boards[1])
    assert boards[0].rows[0].estimate.value == pytest.approx(62.5)
    assert boards[0].rows[0].mean_success == 50


def test_models_stand_the_way_that_is_asked_for():
    greedy = {"returns": [-1.0, -1.0], "solved": [1, 1], "lengths": [1, 1]}

    def model(seed):
        row = made("ppo")
        drawn = row.values["episodes"]["scripted"]
        values = {**row.values, "seed": seed, "way": "drawn"}
        return ExperimentRow({**values, "episodes": {"drawn": drawn, "greedy": greedy}}, None)

    rows = [model(0), model(1), made("random")]
    for way, score, success, other in (
        (None, 62.5, 50, 100),
        ("drawn", 62.5, 50, 100),
        ("greedy", 100, 100, 62.5),
    ):
        (board,) = Ranking.all_of(TINY, rows, way)
        row = board["ppo"]
        assert row.actions == (way or "drawn")
        assert (row.estimate.value, row.mean_success, row.other_mean) == (score, success, other)
        assert board["random"].actions == "scripted"
    assert f"| ppo ({way}) |" in ranking_as_markdown(board)


def test_runs_of_a_name_that_play_different_ways_each_keep_their_own():
    model = made("mine")
    scripted = ExperimentRow({**model.values, "seed": 1}, None)
    episodes = {"drawn": model.values["episodes"]["scripted"]}
    drawn = ExperimentRow({**model.values, "way": "drawn", "episodes": episodes}, None)
    for way in (None, "greedy"):
        (board,) = Ranking.all_of(TINY, [drawn, scripted], way)
        assert board["mine"].label == "mine (mixed)"
        assert board["mine"].estimate.value == pytest.approx(62.5)


def test_the_other_way_of_each_run_is_that_of_its_own():
    low, high = ({"returns": [r, r], "solved": [1, 1], "lengths": [1, 1]} for r in (-5.0, -1.0))
    values = made("mine").values
    drawn = {**values, "way": "drawn", "episodes": {"drawn": high, "greedy": low}}
    greedy = {**values, "id": IDS[1], "way": "greedy", "episodes": {"drawn": low, "greedy": high}}
    (board,) = Ranking.all_of(TINY, [ExperimentRow(each, None) for each in (drawn, greedy)])
    row = board["mine"]
    assert (row.label, row.estimate.value, row.other_mean) == ("mine (mixed)", 100, 0)


def test_runs_of_several_policies_under_one_name_are_marked():
    own = {**made("mine").values, "kind": "trained", "policy": "bc", "settings": {"lr": 1}}
    model = {**own, "seed": 1, "kind": "model", "policy": "a/model.zip", "settings": {}}
    files = [{**model, "policy": file, "seed": seed} for seed, file in enumerate("ab")]
    for rows, marked in (
        ([own, {**own, "seed": 1}], False),
        ([own, {**own, "seed": 1, "settings": {"lr": 2}}], True),
        ([own, model], True),
        ([own, {**model, "id": IDS[1]}], False),
        (files, False),
        ([files[0], {**files[1], "policy_kwargs": {"beta": 4.0}}], True),
    ):
        (board,) = Ranking.all_of(TINY, [ExperimentRow(each, None) for each in rows])
        found = "RUNS OF SEVERAL POLICIES OR SETTINGS: mine." in ranking_caption(board)
        assert found == marked


def test_equal_means_are_tied_however_they_are_rounded():
    rng = np.random.default_rng(3)
    for _ in range(20):
        returns = rng.integers(-6, 0, 20) / 3.0
        parts = {name: np.tile(rng.permutation(returns), (3, 1)) for name in "ab"}
        rows = [
            RankedPolicy(n, "scripted", {"x": SeedScores((0, 1, 2), v)}) for n, v in parts.items()
        ]
        board = Ranking.sorted(TINY, rows, "score")
        assert board.ranks == [(1, 2), (1, 2)]


def test_nothing_is_said_of_what_varies_nowhere():
    scores = [{"x": SeedScores((0, 1), np.full((2, 3), value))} for value in (1.0, 2.0)]
    rows = [RankedPolicy(name, "scripted", part) for name, part in zip("ab", scores)]
    board = Ranking.sorted(TINY, rows, "score")
    assert board.ranks == [(1, 2), (1, 2)]
    assert "no verdict, as nothing tells how it varies" in compare_rows(board, "a", "b")


def test_rows_of_another_simulator_are_marked():
    here = rules_of(IDS[0])
    (board,) = Ranking.all_of(TINY, [made("a", rules=here), made("b", rules=OTHER)])
    assert "NOT COMPARABLE" in ranking_as_markdown(board)
    (board,) = Ranking.all_of(TINY, [made("a", rules=here), made("b")])
    assert "NOT COMPARABLE" not in ranking_as_markdown(board)


def test_rows_of_older_rules_are_counted():
    rows = [made("a", rules=rules_of(IDS[0])), made("b", rules=OTHER), made("c")]
    (board,) = Ranking.all_of(TINY, rows)
    line = "2 of 3 rows were played by older rules (or name none): b, c."
    assert line in ranking_as_markdown(board)
    (board,) = Ranking.all_of(TINY, rows[:1])
    assert "older rules" not in ranking_as_markdown(board)


def test_rows_of_a_joined_panel_tell_their_rules(tmp_path):
    panel = panel_named("slot-filling-acts")
    env_id = "dialgym/CamRestaurants-Env1-act-v0"
    head = ",".join(PyDialRow._fields[:-1])
    old = "CR,1,pydial,0,0,0,0.9,13.0,5.0,0,0.0,0"
    (tmp_path / "a.csv").write_text(f"{head}\n{old}\n")
    today = rules_of(env_id, {"fidelity": "pydial"})
    lines = [f"{head},rules", *(f"{old},{rules}" for rules in (today, OTHER, ""))]
    (tmp_path / "b.csv").write_text("\n".join(lines))
    source = entry_of(env_id).stand_in or "PyDial"
    (tmp_path / "b.json").write_text(json.dumps([{"source": source}]))
    line = "3 of 4 rows were played by older rules (or name none): a, b (2)."
    assert line in ranking_as_markdown(ranking_of_csv(panel, tmp_path))
    (tmp_path / "b.csv").write_text(f"{head},rules\n{old},3\n")
    with pytest.raises(ValueError, match="rules: expected a version and two hashes"):
        ranking_of_csv(panel, tmp_path)


def test_totals_tell_the_cells_of_a_panel_from_others():
    asked, own = row("ppo", 1.0, 2.0, seeds=2), row("mine", 1.0, seeds=3)
    board = Ranking.sorted(TINY, [asked, own], "score")
    found = panel_costs([board], 10, None)
    assert (found.cells, found.wanted, found.others, found.seeds) == (4, 10, 3, (2, 2, 2))
    assert found.cpu_seconds is None
    text = costs_as_markdown([found, found._replace(panel="b", cpu_seconds=7200.0, wanted=None)])
    assert "| tiny | 4 of 10 | 3 | 2 of 2 | - |" in text
    assert "| b | 4 | 3 | 2 of 2 | 2.00 |" in text
    assert "| all | 8 | 6 |  | 2.00 |" in text


def test_the_cost_of_a_joined_panel_is_that_of_its_files(tmp_path):
    head = ",".join(PyDialRow._fields[:-1])
    cells = {"dqn": [("0", 500, 10), ("0", 900, 25), ("1", 500, 5)], "acer": [("0", 500, 2.5)]}
    for name, tests in cells.items():
        lines = [
            f"CR,1,pydial,{seed},{after},0,0.9,13.0,5.0,0,{cost},0" for seed, after, cost in tests
        ]
        (tmp_path / f"{name}.csv").write_text("\n".join([head, *lines]), "utf-8")
    panel, other = panel_named("slot-filling-acts"), panel_named("slot-filling-acts-correct")
    assert training_seconds(panel, tmp_path) == 32.5
    assert training_seconds(other, tmp_path) == 0
    whole = [
        f"CR,1,pydial,{seed},4000,0,0.9,13.0,5.0,0,{cost},0" for seed, cost in ((0, 30), (1, 10))
    ]
    (tmp_path / "dqn.csv").write_text("\n".join([head, *whole]), "utf-8")
    assert ranking_of_csv(panel, tmp_path)["dqn"].cpu_seconds == 20
    (tmp_path / "bad.csv").write_text("domain,env,seed\nCR,1,0\n", "utf-8")
    with pytest.raises(ValueError, match=r"expected columns domain, env, .*cpu_seconds"):
        training_seconds(panel, tmp_path)


def test_a_panel_is_ranked_by_rows_of_its_fidelity(tmp_path):
    panel, other = panel_named("slot-filling-acts"), panel_named("slot-filling-acts-correct")
    head = ",".join(PyDialRow._fields[:-1])
    row = "CR,1,correct,0,4000,0,0.9,13.0,5.0,0,0.0,0"
    (tmp_path / "a.csv").write_text(f"{head}\n{row}\n")
    assert ranking_of_csv(other, tmp_path)["a"].estimate.value == 90
    assert (has_rows(other, tmp_path), has_rows(panel, tmp_path)) == (True, False)
    with pytest.raises(ValueError, match=r"rows of fidelity pydial after 4000 dialogues, got none"):
        ranking_of_csv(panel, tmp_path)
    short = "\n".join(row.replace("0,4000", f"{seed},500") for seed in (1, 2))
    (tmp_path / "a.csv").write_text(f"{head}\n{row}\n{short.replace('0.9', '0.1')}\n")
    board = ranking_of_csv(other, tmp_path)
    assert (board["a"].estimate.value, board["a"].runs) == (90, "1")
    assert "Left out, as trainings that were cut short: a (2)." in ranking_caption(board)
    (tmp_path / "a.csv").write_text(f"{head}\n{short}\n")
    with pytest.raises(ValueError, match=r"of fidelity correct after 4000 dialogues, got none"):
        ranking_of_csv(other, tmp_path)
    (tmp_path / "a.csv").write_text(f"{head}\n{row.replace('correct', 'exact')}\n")
    with pytest.raises(ValueError, match=r"expected columns domain, env, fidelity, seed"):
        ranking_of_csv(other, tmp_path)
