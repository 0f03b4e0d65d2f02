"""What is wrong with a row is found without playing, and a row says nothing that is not checked."""

import copy
import hashlib
import json
from zipfile import ZipFile

import pytest

pytest.importorskip("torch")  # rows say its version
from dialgym.experiments.panel import Panel
from dialgym.experiments.protocol import replay_row, score_policy
from dialgym.experiments.ranking import Ranking
from dialgym.experiments.row import (
    WEIGHTS,
    ExperimentRow,
    is_model_of,
    model_hash,
    protocol_of,
    total_cpu_seconds,
)
from dialgym.experiments.row_checks import row_problems
from dialgym.experiments.row_files import read_row, read_rows
from dialgym.experiments.rules import rules_of
from dialgym.io.checksums import checksum, read_json_checked, write_json_checked
from tests.support.commands import fail, succeed
from tests.support.older_rows import OTHER
from tests.support.tiny_panel import TINY, VALUES, install

(PLACE,) = TINY.environments


@pytest.fixture(autouse=True)
def tiny(monkeypatch):
    return install(monkeypatch)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A row of a scripted policy, as it stands in its file."""
    with pytest.MonkeyPatch.context() as patch:
        install(patch)
        file = score_policy(TINY, PLACE, "random", "random", 0, tmp_path_factory.mktemp("rows"))
    return read_json_checked(file, "a row")


def changed(row, path, value):
    """A copy with another value at a path of names and places."""
    row = copy.deepcopy(row)
    *outer, last = path
    part = row
    for name in outer:
        part = part[name]
    part[last] = value
    return row


def test_a_row_as_it_was_written_is_right(whole):
    assert list(row_problems(whole)) == []
    assert whole["hashes"]["references"][0] < whole["hashes"]["references"][1]
    assert [len(goal) for goal in whole["trials"]["scripted"]] == [4, 4]


class FirstOfAll:
    """Says the first word that may be the secret, and draws nothing."""

    def reply(self, task, state, rng):
        return task.answers[task.candidates(state)[0]]


def test_a_panel_of_all_secrets_plays_each_equally_often(tmp_path, monkeypatch):
    values = {**VALUES, "evaluation": {**VALUES["evaluation"], "secrets": "all"}}
    panel = install(monkeypatch, Panel.of("tiny", values))
    (place,) = panel.environments
    files = [score_policy(panel, place, FirstOfAll(), "first", k, tmp_path) for k in (0, 1)]
    rows = [read_row(file) for file in files]
    returns = [row.values["episodes"]["scripted"]["returns"] for row in rows]
    assert returns[0] == returns[1]  # nothing is left to chance
    assert len(returns[0]) == 40  # the least multiple of 20 words that is 24 or more
    assert returns[0][:20] == returns[0][20:]
    assert protocol_of(panel, place) != protocol_of(TINY, PLACE)
    assert replay_row(rows[0], FirstOfAll()) == []
    short = changed(rows[0].values, ["episodes", "scripted", "returns"], returns[0][:24])
    assert "returns: expected 40 finite numbers, got 24" in "; ".join(row_problems(short))


def test_all_secrets_of_a_task_without_a_list_are_refused(tmp_path, monkeypatch):
    evaluation = {"secrets": "all"}
    values = {**VALUES, "environments": ["Wordle-ILQL-v0"], "evaluation": evaluation}
    panel = install(monkeypatch, Panel.of("tiny", values))
    with pytest.raises(ValueError, match=r"Wordle has no list of its secrets"):
        score_policy(panel, panel.environments[0], "random", "random", 0, tmp_path)


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (["hashes", "references"], [-6.0, -5.0], "references: expected those of the registry"),
        (["hashes", "references"], [-5.0, -5.0], "scores would be others"),
        (["hashes", "references"], "ab", "references: expected those of the registry"),
        (["hashes", "references"], None, "references: expected those of the registry"),
        (["hashes", "source"], "another source", "references: expected those of the registry"),
        (["hashes", "source"], "x)\n# A title", "hashes, source: expected up to 64 letters"),
        (["hashes", "source"], None, "hashes, source: expected up to 64 letters"),
        (["hashes", "protocol"], "0" * 16, "made by another protocol"),
        (["hashes", "rules"], None, "hashes, rules: expected a version and two hashes of 16 hex"),
        (["hashes", "rules", "settings"], "0", "hashes, rules: expected a version and two"),
        (["hashes", "rules", "task_version"], -1, "hashes, rules: expected a version and two"),
        (["statistics", "scripted"], None, "statistics, scripted: expected those of the episodes"),
        (["statistics", "scripted", "return"], None, "expected those of the episodes"),
        (["statistics", "scripted", "return"], "-5", "expected those of the episodes"),
        (["statistics", "scripted", "return"], 0.0, "expected those of the episodes"),
        (["episodes", "scripted", "returns", 3], 10**400, "returns: expected 24 finite numbers"),
        (["episodes", "scripted", "returns", 3], True, "returns: expected 24 finite numbers"),
        (["episodes", "scripted", "returns"], "x" * 24, "returns: expected 24 finite numbers"),
        (["episodes", "scripted", "returns", 3], 0.5, "returns: expected -6 to 0, the env"),
        (["episodes", "scripted", "returns", 3], -7, "returns: expected -6 to 0, the env"),
        (["episodes", "scripted", "lengths", 3], 7, "lengths: expected 1 to 6, the env"),
        (["episodes", "scripted", "lengths", 3], 0, "lengths: expected 1 to 6, the env"),
        (["episodes", "scripted", "solved", 3], 2, "solved: expected 0 or 1"),
        (["trials", "scripted"], [[True] * 4], "4 truth values for each of 2 goals"),
        (["trials", "scripted"], [[True] * 4, [True, True, True, 1]], "truth values"),
        (["trials"], {}, "trials, scripted: expected 4 truth values"),
        (["env_kwargs"], {"hard": True}, "env_kwargs: expected the panel's, {}, got {'hard'"),
        (["held_out"], {"split": "x"}, "held_out: expected the panel's"),
        (["kind"], "model", "episodes: expected drawn and greedy, got ['scripted']"),
        (["kind"], "model", "hashes, model: expected the SHA-256 of the model, got None"),
        (["kind"], "human", "unknown kind 'human'"),
        (
            ["id"],
            "Wordle-20-v0",
            "id: expected 'dialgym/Wordle-20-v0', in full, got 'Wordle-20-v0'",
        ),
        (["name"], "a|b", "name: expected up to 64 letters (a to z), digits, dots, dashes and"),
        (["name"], "a\nb", "a letter or digit first, got 'a\\nb'"),
        (["name"], "mine\u200b", "a letter or digit first, got 'mine\\u200b'"),
        (["name"], "", "a letter or digit first, got ''"),
        (["name"], ".hidden", "a letter or digit first, got '.hidden'"),
        (["name"], "x" * 65, "name: expected up to 64 letters"),
        (["way"], "drawn", "episodes: expected those of its way, drawn"),
        (["seed"], -1, "seed: expected a seed of tiny, version 1, 0 to 1, got -1"),
        (["seed"], 2, "got 2: rows may not choose their episodes"),
        (["policy"], "mine:Policy", "which is that of a scripted policy; the row is of 'mine:Pol"),
        (["name"], "optimal", "expected another name than 'optimal', which is that of a scripted"),
        (["name"], "random-mixture", "the row is of 'random' (scripted)"),
        (["statistics"], {"loud": {}}, "statistics: expected those of the episodes alone, got lo"),
        (["episodes", "scripted", "lengths", 3], 1.5, "lengths: expected whole numbers"),
        (["seed"], True, "seed: expected a whole number, got True"),
        (["curve"], [[1, 2, -3], [1, 2]], "curve[1]: expected timesteps, seconds and a return"),
        (["curve"], [[1, None, 3]], "curve[0]: expected"),
        (["cost", "cpu_seconds"], "long", "cost, cpu_seconds: expected a number from 0"),
        (["cost", "cpu_seconds"], -1, "cost, cpu_seconds: expected a number from 0"),
        (["cost", "cpu_seconds"], 1e308, "cost, cpu_seconds: expected a number from 0 to 1e+09"),
        (["seconds"], float("nan"), "cost, seconds: expected a number from 0 to 1e+09, got nan"),
        (["curve"], [[1, 2, -3], [0, 3, -3]], "curve[1]: expected timesteps and seconds that rise"),
        (["curve"], [[1, 1e300, -3]], "curve[0]: expected timesteps and seconds that rise"),
        (["curve"], [[1, 2, 3]], "curve[0]: expected a return of -6 to 0, got 3"),
    ],
)
def test_what_does_not_fit_is_named(whole, path, value, message):
    assert any(message in text for text in row_problems(changed(whole, path, value)))


def test_successes_that_no_goal_knows_of_are_named(whole):
    row = changed(whole, ["episodes", "scripted", "solved"], [1] * 24)
    row = changed(row, ["statistics", "scripted", "success"], 1.0)
    for goal, wrong in (
        ([False] * 4, "pass^1 is 0.0 %, and 100.0 % of the episodes are solved: expected 30.0 %"),
        ([True, True, False, False], "pass^4 is 0.0 %, and 100.0 % of the episodes are solved"),
    ):
        found = [*row_problems(changed(row, ["trials", "scripted"], [goal] * 2))]
        assert any(wrong in text for text in found), found
    assert not list(row_problems(changed(row, ["trials", "scripted"], [[True] * 4, [False] * 4])))


def test_who_chooses_seeds_or_borrows_a_name_is_told_before_anything_is_played(
    tmp_path, monkeypatch
):
    monkeypatch.setattr("dialgym.experiments.protocol._Scoring.figures", None)
    with pytest.raises(
        ValueError, match=r"seed: expected a seed of tiny, version 1, 0 to 1, got 7"
    ):
        score_policy(TINY, PLACE, "random", "mine", 7, tmp_path)
    with pytest.raises(ValueError, match=r"name: expected another name than 'optimal'"):
        score_policy(TINY, PLACE, "random", "optimal", 0, tmp_path)
    assert "--seeds: expected a seed of tiny, version 1, 0 to 1, got 5" in fail(
        "benchmark", "tiny", "--seeds", "5-6", "--out", str(tmp_path)
    )


def test_what_lacks_a_checksum_or_a_model_is_marked(whole, tmp_path):
    sealed = score_policy(TINY, PLACE, "random", "random", 0, tmp_path)
    bare = tmp_path / "tiny" / "bare" / sealed.name
    bare.parent.mkdir()
    bare.write_text(json.dumps({**whole, "name": "bare"}), "utf-8")
    shown = succeed("leaderboard", "show", "tiny", "--results", str(tmp_path))
    assert "WITHOUT A CHECKSUM: files of bare." in shown
    assert "Can be played again: 2 of 2 rows" in shown
    checked = succeed("leaderboard", "check", str(tmp_path))
    assert (
        f"{bare}: form, hashes and statistics hold; not played again (--replay); WITHOUT" in checked
    )
    assert f"{sealed}: form, hashes and statistics hold; not played again (--replay)\n" in checked
    succeed("leaderboard", "html", "tiny", "--results", str(tmp_path), "--out", str(tmp_path / "x"))
    assert "missing in rows of bare" in (tmp_path / "x").read_text("utf-8")
    trained = ExperimentRow({**whole, "kind": "trained", "name": "mine"}, tmp_path / "mine.json")
    board = Ranking.of(TINY, [read_row(sealed), trained])
    assert (board.unsealed, board.unreplayable) == ([], ["mine"])


def test_ends_are_compared_only_where_the_environment_is_here(whole, monkeypatch):
    far = changed(whole, ["episodes", "scripted", "lengths", 3], 7)
    elsewhere = changed(far, ["hashes", "source"], "another source")
    assert any("lengths" in text for text in row_problems(far))
    assert not any("lengths: expected 1" in text for text in row_problems(elsewhere))

    def missing(entry, settings):
        raise ImportError("an extra")

    monkeypatch.setattr("dialgym.experiments.row_checks.make_dialogue", missing)
    assert list(row_problems(whole)) == []


def test_a_row_names_the_rules_that_it_was_played_by(whole, tmp_path):
    file = tmp_path / "x.json"
    assert whole["hashes"]["rules"] == rules_of(PLACE.id)._asdict()
    other = changed(whole, ["hashes", "rules", "dialogues"], "0" * 16)
    (found,) = replay_row(ExperimentRow(other, file), "random")
    assert "hashes, rules: the environment here is another" in found
    earlier = changed(whole, ["hashes"], {**whole["hashes"], "dialogues": "0" * 16})
    del earlier["hashes"]["rules"]  # as before there were any
    assert list(row_problems(earlier)) == []
    assert replay_row(ExperimentRow(earlier, file), "random") == []
    for row, older in ((whole, False), (other, True), (earlier, True)):
        assert ExperimentRow(row, file).origin.is_older == older


def test_check_tells_rows_of_older_rules(whole, tmp_path):
    files = []
    for seed, rules in enumerate([whole["hashes"]["rules"], {**OTHER._asdict()}]):
        row = {**whole, "seed": seed, "hashes": {**whole["hashes"], "rules": rules}}
        files.append(tmp_path / f"Wordle-20-v0-seed{seed}.json")
        write_json_checked(files[-1], {k: v for k, v in row.items() if k != "sha256"})
    text = " ".join(succeed("leaderboard", "check", *map(str, files)).split())
    assert "1 of 2 rows was played by older rules (or name none): random." in text
    assert "older rules" not in succeed("leaderboard", "check", str(files[0]))


def test_replay_finds_other_trials_and_another_way(whole, tmp_path):
    trials = [[not one for one in goal] for goal in whole["trials"]["scripted"]]
    row = ExperimentRow(changed(whole, ["trials", "scripted"], trials), tmp_path / "x.json")
    found = replay_row(row, "random")
    assert len(found) == 2
    assert all("in the file" in text and "trials, goal" in text for text in found)
    assert replay_row(ExperimentRow(whole, tmp_path / "x.json"), "random") == []


def test_rows_of_another_version_are_not_shown_beside_it(whole, tmp_path):
    for name, row in (("new", whole), ("old", {**whole, "version": 9, "hashes": {}})):
        file = tmp_path / "tiny" / name / "Wordle-20-v0-seed0.json"
        file.parent.mkdir(parents=True)
        write_json_checked(file, {**row, "name": name})
    assert [row.name for row in read_rows([tmp_path], TINY)] == ["new"]
    with pytest.raises(ValueError, match=r"version: expected 1 of 'tiny', got 9"):
        read_row(tmp_path / "tiny" / "old" / "Wordle-20-v0-seed0.json")


def test_rows_of_other_data_hide_none(whole, tmp_path):
    other = changed(whole, ["hashes", "source"], "another source")
    other["hashes"]["references"] = None
    for folder, row in (("a", whole), ("b", other), ("c", whole)):
        file = tmp_path / folder / "tiny" / "random" / "Wordle-20-v0-seed0.json"
        file.parent.mkdir(parents=True)
        write_json_checked(file, {k: v for k, v in row.items() if k != "sha256"})
    rows = read_rows([tmp_path / folder for folder in "abc"], TINY)
    assert [row.source for row in rows] == ["as named", "another source"]


def test_a_row_of_another_policy_is_not_written_over(whole, tmp_path):
    file = score_policy(TINY, PLACE, "random", "mine", 0, tmp_path)
    before = file.read_text("utf-8")
    assert score_policy(TINY, PLACE, "random", "mine", 0, tmp_path) == file  # the same once more
    message = r"mine.*is the row of another policy \(random, scripted\).*--name"
    with pytest.raises(ValueError, match=message):
        score_policy(TINY, PLACE, "optimal", "mine", 0, tmp_path)
    trained = {**json.loads(before), "kind": "trained", "hashes": {"model": "0" * 64}}
    write_json_checked(file, {k: v for k, v in trained.items() if k != "sha256"})
    text = fail("leaderboard", "add", "tiny", "random", "--name", "mine", "--out", str(tmp_path))
    assert "is the row of another policy (random, trained)" in " ".join(text.split())
    assert json.loads(file.read_text("utf-8"))["kind"] == "trained"


def test_rows_that_share_no_environment_are_not_ranked_against_each_other(whole, tmp_path):
    both = Panel.of("tiny", {**VALUES, "environments": ["Wordle-20-v0", "Wordle-200-v0"]})

    def row(name, env):
        return ExperimentRow({**whole, "name": name, "id": f"dialgym/{env}-v0"}, tmp_path / name)

    rows = [row("a", "Wordle-20"), row("b", "Wordle-20"), row("c", "Wordle-200")]
    board = Ranking.of(both, rows)
    assert [one.name for one in board.rows] == ["a", "b", "c"]
    assert board.complete == 2
    assert Ranking.of(both, rows[1:]).complete == 1
    assert Ranking.of(both, [*rows, row("c", "Wordle-20")]).complete == 1


def test_a_model_is_known_by_its_weights_whenever_it_was_written(tmp_path):
    def written(name, weights, time):
        with ZipFile(tmp_path / name, "w") as archive:
            archive.writestr(WEIGHTS, weights)
            archive.writestr("time", time)
        return tmp_path / name

    first, later = written("a.zip", b"one", "today"), written("b.zip", b"one", "tomorrow")
    other = written("c.zip", b"two", "today")
    hashes = model_hash(first)
    assert hashes == {"weights": hashlib.sha256(b"one").hexdigest()}
    assert [is_model_of(hashes, file) for file in (first, later, other, None)] == [
        *(True, True, False, False)
    ]
    older = {"model": checksum(first)}  # of a row that was made before weights had a hash
    assert [is_model_of(older, file) for file in (first, later, None)] == [True, False, False]
    (tmp_path / "pickled").write_bytes(b"no zip")
    assert model_hash(tmp_path / "pickled") == {"model": checksum(tmp_path / "pickled")}
    assert is_model_of({}, None)


def test_dialogues_that_several_rows_have_learned_from_cost_once():
    def row(seed, data, **cost):
        values = {"panel": "tiny", "id": "x", "hashes": {"data": data}, "cost": cost, "seed": seed}
        return ExperimentRow(values, None)

    rows = [row(k, "d", cpu_seconds=5, start_cpu_seconds=3, data_cpu_seconds=7) for k in (0, 1)]
    assert [one.cpu_seconds for one in rows] == [15, 15]
    assert total_cpu_seconds([*rows, row(0, None, cpu_seconds=2)]) == 25
    assert total_cpu_seconds([row(0, None)]) is None
