"""Branching, adversarial and human-like games of Wordle."""

import csv
import json
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dialgym
from dialgym.datasets import Dataset
from dialgym.tasks.generators import Branch, Tree
from dialgym.tasks.splits import split_of
from dialgym.tasks.wordle import Wordle
from dialgym.tasks.wordle.generators import HumanGames
from dialgym.tasks.wordle.patterns import REPLIES
from dialgym.tasks.wordle.policies import OptimalWordle, RandomWord, Repeat
from dialgym.tasks.wordle.posts import Post, read_post

SQUARES = {"b": "⬛", "y": "🟨", "g": "🟩"}


def guesses(row: dict[str, Any]) -> list[str]:
    return [turn["text"] for turn in row["turns"] if turn["party"] == "system"]


def colours(row: dict[str, Any]) -> list[str]:
    return [turn["text"] for turn in row["turns"] if turn["party"] == "user"]


def assert_replays(dataset: Dataset) -> None:
    """Each dialogue is what its seed and its learner's utterances give."""
    env = gym.make(dataset[0]["env"].replace("-v0", "-utterance-v0"))
    for row in dataset:
        env.reset(seed=row["seed"])
        *_, last = (env.step(text) for text in guesses(row))
        lines = [f"{turn['party']}: {turn['text']}\n" for turn in row["turns"]]
        assert last[0] == "".join(lines)
        assert last[2] == row["terminated"]


@pytest.mark.parametrize("env_id", ["Wordle-200-v0", "Wordle-ILQL-v0"])
def test_branches_go_on_from_their_game(env_id: str):
    dataset = dialgym.collect(env_id, "branching", 20, policy_kwargs={"games": 2})
    pairs = dataset.pairs("wrong")
    assert len(pairs) == 2 * dataset.lengths[dataset["kind"] == "expert"].sum()
    for source, branch, after in pairs:
        first, second = dataset[source], dataset[branch]
        assert guesses(first)[:after] == guesses(second)[:after]
        assert colours(first)[:after] == colours(second)[:after]
        assert first["seed"] == second["seed"]
    assert_replays(dataset)


def test_branches_of_wrong_words_never_say_what_may_be_the_secret():
    dataset = dialgym.collect("Wordle-200-v0", "branching", 30)
    pairs = dataset.pairs()
    late = pairs[pairs[:, 2] > 0]
    assert (dataset.returns[late[:, 1]] == -6).all()


def test_adversarial_games_repeat_the_openings():
    settings = {"repeats": 3, "suboptimal": 2}
    dataset = dialgym.collect("Wordle-200-v0", "adversarial", 40, policy_kwargs=settings)
    kinds, counts = np.unique(dataset["kind"], return_counts=True)
    expert = dataset.filter(dataset["kind"] == "expert")
    long = int((expert.lengths >= 3).sum())
    assert dict(zip(kinds, counts)) == {"expert": 40, "repeat": 3 * long, "suboptimal": 80}
    for source, branch, after in dataset.pairs("repeat"):
        said = guesses(dataset[branch])
        assert after == 2
        assert said[:2] == guesses(dataset[source])[:2]
        assert len(said) == 6
        assert set(said) == set(said[:2])
    assert set(dataset.returns[dataset["kind"] == "repeat"]) == {-6.0}
    assert_replays(dataset)


@pytest.mark.parametrize("name", ["branching", "adversarial"])
def test_experts_open_with_words_of_your_own(name: str):
    settings = {"start_words": ["metal", "table"]}
    dataset = dialgym.collect("Wordle-200-v0", name, 20, policy_kwargs=settings)
    experts = dataset.filter(dataset["kind"] == "expert")
    assert {guesses(row)[0] for row in experts} == {"metal", "table"}
    with pytest.raises(ValueError, match="expected answers of this Wordle; got crane, of which no"):
        dialgym.collect("Wordle-200-v0", name, 1, policy_kwargs={"start_words": ["crane"]})


def test_any_number_of_workers_and_any_object():
    tree = Tree(OptimalWordle(), (Branch("again", Repeat(1), games=2, after=1),), kind="best")
    alone = dialgym.collect("Wordle-20-v0", tree, 12, shard_size=4)
    shared = dialgym.collect("Wordle-20-v0", tree, 12, shard_size=4, workers=1)
    assert alone.table.equals(shared.table)
    assert set(alone["kind"]) == {"best", "again"}
    assert set(alone["policy"]) == {"Tree"}


def test_branches_are_independent_of_each_other():
    tree = Tree(RandomWord(), (Branch("more", RandomWord(), games=8, after=0),))
    dataset = dialgym.collect("Wordle-v0", tree, 1)
    assert len({guesses(row)[0] for row in dataset}) == 9


def test_a_game_and_its_branches_are_split_together():
    dataset = dialgym.collect("Wordle-20-v0", "adversarial", 60)
    first, second = dataset.split(0.5, seed=1)
    assert not set(first["episode"]) & set(second["episode"])
    assert len(first) + len(second) == len(dataset)


# Human-like games


def post(row: dict[str, Any], day: int = 210) -> str:
    """The squares of a game as people post them."""
    lines = ["".join(SQUARES[c] for c in text.split()) for text in colours(row)]
    score = len(lines) if row["success"] else "X"
    return f"Wordle {day} {score}/6\n\n" + "\n".join(lines) + "\nnot bad"


def write_csv(path: Path, posts: list[str], column: str = "tweet_text") -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["wordle_id", "tweet_id", "tweet_date", "tweet_username", column])
        for i, text in enumerate(posts):
            writer.writerow([210, i, "2022-01-15 12:00:00+00:00", f"user{i}", text])
    return path


@pytest.fixture(scope="module")
def tweets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    games = dialgym.collect("Wordle-v0", "optimal", 60, seed=7)
    games += dialgym.collect("Wordle-v0", "random-mixture", 40, seed=8)
    posts = [post(row) for row in games]
    return write_csv(tmp_path_factory.mktemp("tweets") / "tweets.csv", posts)


def test_human_games_have_the_colours_of_a_post(tweets: Path):
    dataset = dialgym.collect("Wordle-v0", "human", 200, policy_kwargs={"tweets": str(tweets)})
    posted = {tuple(str(REPLIES[p]) for p in post.patterns) for post in HumanGames(tweets).posts}
    played = {tuple(colours(row)) for row in dataset}
    assert played <= posted
    assert len(played) > 0.6 * len(posted)
    task, env = Wordle(), gym.make("dialgym/Wordle-utterance-v0")
    for row in list(dataset)[:20]:
        secret = row["options"].split('"')[3]
        assert secret in task.answers
        env.reset(seed=row["seed"], options={"word": secret})
        *_, last = (env.step(text) for text in guesses(row))
        assert last[2]
        assert row["terminated"]
        assert not row["truncated"]
    won = [row["turns"][-1]["text"] == "g g g g g" for row in dataset]
    assert dataset["success"].tolist() == won


def test_human_games_are_about_words_of_the_split(tweets: Path):
    rows = dialgym.collect(
        "Wordle-v0",
        "human",
        50,
        policy_kwargs={"tweets": str(tweets)},
        env_kwargs={"split": "test"},
    )
    assert {split_of(row["options"].split('"')[3]) for row in rows} == {"test"}


def test_posts_that_no_word_fits_are_never_drawn(tmp_path: Path):
    five_yellow_then_solved = "Wordle 1 2/6\n🟨🟨🟨🟨🟨\n🟩🟩🟩🟩🟩"
    solved = "Wordle 1 1/6\n🟩🟩🟩🟩🟩"
    path = write_csv(tmp_path / "t.csv", [five_yellow_then_solved, solved])
    kwargs: dict[str, Any] = {"answers": ["crane", "about"], "guesses": "answers"}
    dataset = dialgym.collect(
        "Wordle-v0", "human", 20, env_kwargs=kwargs, policy_kwargs={"tweets": str(path)}
    )
    assert (dataset.lengths == 1).all()
    assert {guesses(row)[0] for row in dataset} == {"crane", "about"}
    path = write_csv(tmp_path / "u.csv", [five_yellow_then_solved])
    with pytest.raises(ValueError, match="none of the 1 posts fits the words of this Wordle"):
        dialgym.collect(
            "Wordle-v0", "human", 2, env_kwargs=kwargs, policy_kwargs={"tweets": str(path)}
        )


SOLVED_IN_TWO = "⬛⬛⬛⬛⬛\n🟩🟩🟩🟩🟩"
DAYS = [f"Wordle {day} 2/6\n{SOLVED_IN_TWO}" for day in (224, 229, 999)]


def secrets_of(path: Path, **settings: Any) -> set[str]:
    """The secrets of games with the colours of posts."""
    kwargs = {"answers": ["could", "shard", "light", "their"], "guesses": ["jumpy", "venom"]}
    given = {"tweets": str(path), **settings}
    rows = dialgym.collect("Wordle-v0", "human", 30, env_kwargs=kwargs, policy_kwargs=given)
    assert rows["success"].all()
    return {guesses(row)[-1] for row in rows}


def test_the_secret_may_be_the_word_of_the_day(tmp_path: Path):
    path = write_csv(tmp_path / "t.csv", DAYS)
    assert secrets_of(path) == {"could", "shard", "light", "their"}
    assert secrets_of(path, true_word=True) == {"could", "shard"}
    assert secrets_of(path, true_word=True, games=[1]) == {"shard"}
    assert secrets_of(path, true_word={224: "light", "999": "their"}) == {"light", "their"}
    with pytest.raises(ValueError, match="none of the 1 posts fits the words of their days"):
        secrets_of(path, true_word=True, games=[2])


def test_the_json_of_ilql_has_games_with_their_words(tmp_path: Path):
    rows = ["<b><b><b><b><b>", "<g><g><g><g><g>"]
    games = [["light", rows], ["shard", rows[:1]], ["could", rows], ["their", ["<y>" * 5] * 6]]
    path = tmp_path / "tweets.json"
    path.write_text(json.dumps({"games": games, "transitions": {}}))
    assert HumanGames(path).posts == [
        Post((0, 242), "light"), Post((0, 242), "could"), Post((121,) * 6, "their")
    ]  # fmt: skip
    assert secrets_of(path) == {"could", "shard", "light", "their"}
    assert secrets_of(path, true_word=True) == {"light", "could"}
    assert secrets_of(path, true_word=True, games=[1, 2]) == {"could"}  # places in the file


@pytest.mark.parametrize(
    ("content", "settings", "message"),
    [
        ({"transitions": {}}, {}, "expected a list 'games'; got transitions"),
        ({"games": [["light", ["<b><y>"]]]}, {}, r"games\[0\]: expected a word and rows such as"),
        ({"games": [["light"]]}, {}, r"games\[0\]: expected a word and rows .*got \['light'\]"),
        ({"games": [["LIGHT", ["<g>" * 5]]]}, {}, r"games\[0\]: expected a word"),
        ({"games": [["light", ["<g>" * 5]]]}, {"games": [1]}, "number of a game of .* from 0 to 0"),
        ({"games": [["light", ["<g>" * 5]]]}, {"true_word": {"x": "light"}}, "got x: light"),
    ],
)
def test_json_that_is_not_of_games(tmp_path: Path, content: Any, settings: Any, message: str):
    (tmp_path / "t.json").write_text(json.dumps(content))
    with pytest.raises(ValueError, match=message):
        HumanGames(tmp_path / "t.json", **settings)


@given(st.lists(st.integers(0, 241), max_size=5), st.booleans())
def test_squares_are_read_as_they_were_posted(wrong: list[int], solved: bool):
    game = [*wrong, 242] if solved else (wrong * 6)[:6]
    rows = ["".join(SQUARES[c] for c in str(REPLIES[p]).split()) for p in game]
    text = f"Wordle 1,234 {len(game) if solved else 'X'}/6*\n\n" + "\n".join(rows)
    assert read_post(text, {1234: "about"}) == (Post(tuple(game), "about") if game else None)
    assert read_post(text.replace("Wordle", "Worldle"), {}) is None


@pytest.mark.parametrize(
    ("text", "game"),
    [
        ("Wordle 210 1/6\n🟧🟧🟧🟧🟧", (242,)),
        ("Wordle 210 2/6\n⬜️🟦⬜️⬜️🟧\n🟩🟩🟩🟩🟩", (29, 242)),
        ("Wordle 210 3/6\n⬜🟦⬜⬜🟧\n🟩🟩🟩🟩🟩", None),  # a row is missing
        ("Wordle 210 X/6\n⬜🟦⬜⬜🟧\n🟩🟩🟩🟩🟩", None),
        ("Wordle 210 2/6\n🟩🟩🟩🟩🟩\n🟩🟩🟩🟩🟩", None),
        ("no game", None),
    ],
)
def test_posts(text: str, game: tuple[int, ...] | None):
    assert read_post(text, {}) == (game and Post(game))


def test_files_that_hold_no_posts(tmp_path: Path):
    with pytest.raises(ValueError, match="expected a file of rows at"):
        HumanGames(tmp_path / "nothing.csv")
    with pytest.raises(
        ValueError, match=r"a\.csv, line 2 has no column 'tweet_text'; it has wordle_id, tweet_id"
    ):
        HumanGames(write_csv(tmp_path / "a.csv", ["x"], column="words"))
    with pytest.raises(ValueError, match="no game of Wordle in the column 'tweet_text'"):
        HumanGames(write_csv(tmp_path / "b.csv", ["x"]))


def test_human_games_need_a_secret_that_stays(tweets: Path):
    with pytest.raises(ValueError, match="the dialogues of 'human' bring their own"):
        dialgym.collect(
            "Wordle-v0",
            "human",
            1,
            policy_kwargs={"tweets": str(tweets)},
            options={"word": "about"},
        )
    with pytest.raises(ValueError, match=r"expected a Wordle with secret='fixed'.*'resample'"):
        dialgym.collect("Wordle-ILQL-v0", "human", 1, policy_kwargs={"tweets": str(tweets)})


def test_games_may_repeat_from_the_opening_on():
    games = dialgym.collect("Wordle-Alike-v0", "adversarial", 40, policy_kwargs={"after": 1})
    pairs = games.pairs("repeat")
    assert len(pairs) == 5 * (games.returns[games["kind"] == "expert"] < 0).sum()
    for source, branch, shared in pairs:
        opening, *rest = [turn["text"] for turn in games[int(branch)]["turns"] if turn["said"]]
        assert shared == 1
        assert opening == games[int(source)]["turns"][0]["text"]
        assert {opening} == {*rest}
        assert len(rest) == 5
