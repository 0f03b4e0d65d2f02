"""Datasets: choosing, joining, splitting, describing, storing, exchanging."""

import json
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dialgym
from dialgym.datasets import Dataset, concatenate, from_minari
from dialgym.datasets.describe import describe
from dialgym.io import hub
from dialgym.registry import MAKE_VIEW


@cache
def collected() -> Dataset:
    return dialgym.collect("Wordle-200-v0", "random-mixture", 60, seed=1)


@pytest.fixture
def games() -> Dataset:
    return collected()


def slow_return(row: dict[str, Any]) -> float:
    return sum(turn["reward"] for turn in row["turns"])


def test_rows_columns_returns_and_lengths(games: Dataset):
    rows = list(games)
    assert rows[5] == games[5]
    assert rows[-1] == games[-1]
    assert games["episode"].tolist() == list(range(60))
    assert games.returns.tolist() == [slow_return(row) for row in rows]
    said = [sum(turn["party"] == "system" for turn in row["turns"]) for row in rows]
    assert games.lengths.tolist() == said
    with pytest.raises(IndexError):
        games[60]


@given(st.lists(st.integers(0, 59), max_size=12))
@settings(max_examples=20)
def test_selected_rows_are_whole(rows: list[int]):
    games = collected()
    chosen = games.select(rows)
    assert list(chosen) == [games[row] for row in rows]
    np.testing.assert_array_equal(chosen.returns, games.returns[rows])
    np.testing.assert_array_equal(chosen.lengths, games.lengths[rows])
    data = chosen.tokens(cache=False) if rows else None
    if data is not None:
        whole = games.tokens(cache=False)
        picked = data.batch(np.arange(len(rows)))
        np.testing.assert_array_equal(picked.tokens, whole.batch(rows).tokens)


def test_filters(games: Dataset):
    solved = games.filter(games["success"])
    assert solved.table.equals(games.filter(lambda row: row["success"]).table)
    assert 0 < len(solved) < len(games)
    assert (solved.returns > -6).all()
    assert len(games.filter(np.zeros(60, bool))) == 0
    with pytest.raises(ValueError, match=r"expected a function of a row, or \(60,\) bool"):
        games.filter(np.zeros(4, bool))


@pytest.mark.parametrize("share", [0.1, 0.3, 1.0])
def test_the_best_share(games: Dataset, share: float):
    best = games.top(share)
    assert len(best) == round(60 * share)
    left_out = sorted(games.returns)[: 60 - len(best)]
    assert best.returns.min() >= max(left_out, default=-np.inf)
    assert (np.diff(best["episode"]) > 0).all()
    worst = games.bottom(share)
    assert len(worst) == len(best)
    assert worst.returns.max() <= min(sorted(games.returns)[len(worst) :], default=np.inf)
    assert (np.diff(worst["episode"]) > 0).all()
    for wrong in (0, 1.5):
        for name in ("top", "bottom"):
            with pytest.raises(ValueError, match=f"{name}: share must be above 0 and at most 1"):
                getattr(games, name)(wrong)


def test_the_dialogues_of_at_least_a_return(games: Dataset):
    middle = float(np.median(games.returns))
    assert games.at_least(middle)["episode"].tolist() == [
        number for number, gained in enumerate(games.returns) if gained >= middle
    ]
    with pytest.raises(ValueError, match="a return of 3 or more; the greatest of 60 is"):
        games.at_least(3)


def test_splits_are_the_same_in_every_dataset():
    games = dialgym.collect("Wordle-20-v0", "random", 1000)
    first, second = games.split(0.8, seed=3)
    assert sorted([*first["episode"], *second["episode"]]) == list(range(1000))
    assert abs(len(first) - 800) < 60  # 4.7 standard deviations
    part = games.select(range(0, 1000, 7))
    assert set(part.split(0.8, seed=3)[0]["episode"]) <= set(first["episode"])
    assert set(games.split(0.8, seed=4)[0]["episode"]) != set(first["episode"])
    with pytest.raises(ValueError, match="share must be between 0 and 1; got 1"):
        games.split(1)


def test_joining(games: Dataset):
    other = dialgym.collect("Wordle-200-v0", "optimal", 5)
    both = games + other
    assert len(both) == 65
    assert both[62] == other[2]
    assert both.table.equals(concatenate([games, other]).table)
    with pytest.raises(ValueError, match="expected at least one dataset"):
        concatenate([])


def test_description(games: Dataset, tmp_path: Path):
    both = games + dialgym.collect("Wordle-200-v0", "optimal", 20)
    found = describe(both, plot=tmp_path / "plot.png")
    assert found.by_policy == {"optimal": 20, "random-mixture": 60}
    assert found.utterances == both.lengths.sum()
    text = str(found)
    assert "dialogues   80" in text
    assert f"mean {both.returns.mean():.3f}" in text
    assert f"success     {both['success'].mean():.1%}" in text
    found.plot(tmp_path / "plot")
    for name in ("plot.png", "plot"):  # a name without a suffix stays as it is
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")
    with pytest.raises(ValueError, match="the dataset is empty"):
        games.filter(np.zeros(60, bool)).describe()


# Files


def test_saving_loading_and_streaming(games: Dataset, tmp_path: Path):
    file = games.save(tmp_path / "some")
    assert file.name == "dialogues.parquet"
    assert dialgym.load_dataset(tmp_path / "some").table.equals(games.table)
    assert dialgym.load_dataset(str(file)).table.equals(games.table)
    stream = dialgym.load_dataset(file, streaming=True)
    assert list(stream) == list(games)
    parts = list(stream.datasets(25))
    assert [len(part) for part in parts] == [25, 25, 10]
    assert concatenate(parts).table.equals(games.table)
    assert (
        parts[1].tokens().batch([0]).tokens.tolist() == games.tokens().batch([25]).tokens.tolist()
    )


def test_a_dataset_of_hugging_face(games: Dataset):
    found = games.to_hf()
    assert found[3]["turns"][0]["text"] == games[3]["turns"][0]["text"]
    assert found.num_rows == 60


def test_the_split_of_a_single_file(games: Dataset, tmp_path: Path):
    games.save(tmp_path / "test" / "0.parquet")
    assert len(dialgym.load_dataset(tmp_path / "test" / "0.parquet")) == 60
    assert len(dialgym.load_dataset(tmp_path / "test" / "0.parquet", split="test")) == 60
    with pytest.raises(ValueError, match=r"no Parquet files of the split 'train'; it has test"):
        dialgym.load_dataset(tmp_path / "test" / "0.parquet", split="train")


def test_a_name_on_the_hub(games: Dataset, tmp_path: Path, pretend_hub: Any):
    games.save(tmp_path / "data" / "test-0.parquet")
    games.filter(games["episode"] < 3).save(tmp_path / "data" / "train-0.parquet")
    pretend_hub.add("someone/games", tmp_path, "v1")
    assert list(dialgym.load_dataset("hf:someone/games@v1", split="test")) == list(games)
    stream = dialgym.load_dataset("hf:someone/games@v1", streaming=True, split="test")
    assert [len(part) for part in stream.datasets(40)] == [40, 20]
    assert list(stream) == list(games)
    assert len(dialgym.load_dataset("hf:someone/games@v1")) == 3
    assert pretend_hub.asked == [("someone/games", "dataset", "v1", ("*.parquet", "*.json"))]
    with pytest.raises(ValueError, match=r"no Parquet files of the split 'dev'; it has test, tr"):
        dialgym.load_dataset("hf:someone/games@v1", split="dev")
    with pytest.raises(FileNotFoundError, match="'hf:someone/games' could not be fetched"):
        dialgym.load_dataset("hf:someone/games")
    with pytest.raises(FileNotFoundError, match=r"no file or folder .*say 'hf:someone/games'"):
        dialgym.load_dataset("someone/games")


def test_loading_files_asks_nobody(games: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("socket.socket.connect", lambda *to: pytest.fail(f"it asks {to}"))
    monkeypatch.setattr("socket.getaddrinfo", lambda *to, **more: pytest.fail(f"it asks {to}"))
    games.save(tmp_path)
    assert len(dialgym.load_dataset(tmp_path)) == len(games)


def test_a_collection_says_which_commits_it_is_of(tmp_path: Path, pretend_hub: Any):
    words, out = tmp_path / "words", tmp_path / "out"
    words.mkdir()
    (words / "table.csv").write_text("name,red,big\napple,1,0\nbarn,1,1\nsea,0,1\n")
    pretend_hub.add("who/things", words)
    made = {"env_kwargs": {"table": "hf:who/things"}, "path": out, "shard_size": 2}
    dialgym.collect("TwentyQuestions-v0", "random", 2, **made)
    recipe = json.loads((out / "collection.json").read_text())
    assert recipe["hub"] == {"hf:who/things": pretend_hub.repositories["who/things", None][1]}
    dialgym.collect("TwentyQuestions-v0", "random", 4, **made)
    pretend_hub.add("who/things", words, commit="f" * 40)
    hub._folders.clear()
    with pytest.raises(ValueError, match=r"'hf:who/things' was at 0123.* is at ffff"):
        dialgym.collect("TwentyQuestions-v0", "random", 6, **made)


def test_the_utterance_view_has_the_same_dialogues(games: Dataset):
    found = dialgym.collect("Wordle-200-utterance-v0", "random-mixture", 60, seed=1)
    assert found.table["turns"].equals(games.table["turns"])
    np.testing.assert_array_equal(found.tokens().tokens, games.tokens().tokens)


def test_what_is_no_dataset(games: Dataset, tmp_path: Path):
    with pytest.raises(FileNotFoundError, match="no Parquet files in"):
        dialgym.load_dataset(tmp_path)
    for path in (tmp_path / "none", "some/where/else", "./x", "none.parquet"):
        with pytest.raises(FileNotFoundError, match="there is no file or folder"):
            dialgym.load_dataset(path)
    file = Dataset(games.table.drop_columns(["turns"])).save(tmp_path / "x.parquet")
    with pytest.raises(ValueError, match=r"there is no 'turns'\. Was it written by dialgym"):
        dialgym.load_dataset(file)


def test_packed_tokens_are_built_once(games: Dataset, tmp_path: Path, monkeypatch: Any):
    monkeypatch.setenv("DIALGYM_CACHE", str(tmp_path))
    first = games.tokens(cache=True)
    built = sorted(tmp_path.glob("*.npy"))
    assert len(built) == 6
    monkeypatch.setattr("dialgym.datasets.packing.flat_arrays", None)  # must not be called
    second = (games.select(range(30)) + games.select(range(30, 60))).tokens(cache=True)
    assert sorted(tmp_path.glob("*.npy")) == built
    assert not second.tokens.flags.writeable
    for name in ("tokens", "is_action", "reward", "offsets", "terminated", "truncated"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))
    monkeypatch.undo()
    monkeypatch.setenv("DIALGYM_CACHE", str(tmp_path))
    games.tokens(cache=True, window=120)
    games.select(range(59)).tokens(cache=True)
    assert len(list(tmp_path.glob("*.npy"))) == 18


# Minari


@pytest.mark.filterwarnings("ignore::UserWarning:minari")
@pytest.mark.parametrize("data_format", ["hdf5", "arrow"])
def test_to_minari_and_back(data_format: str, tmp_path: Path, monkeypatch: Any):
    pytest.importorskip("minari")
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    settings = {"turns": 4, "window": 80, "action_masks": True}  # two are of the token view alone
    kwargs: dict[str, Any] = {"env_kwargs": settings, "options": {"word": "about"}}
    dataset = dialgym.collect("Wordle-v0", "random-mixture", 6, **kwargs)
    stored = dataset.to_minari("wordle/mixed-v0", data_format)
    assert stored.total_steps == dataset.lengths.sum()
    episode = next(iter(stored.iterate_episodes()))
    assert len(episode.observations) == len(episode.actions) + 1
    assert episode.actions[0] == dataset[0]["turns"][0]["text"]
    assert stored.recover_environment().unwrapped.task.turns == 4
    assert "turns" not in gym.spec("dialgym/Wordle-utterance-v0").kwargs
    back = from_minari("wordle/mixed-v0")
    assert list(back) == list(dataset)
    assert json.loads(back["options"][0]) == {"word": "about"}
    tokens = dataset.tokens().batch(np.arange(6)), back.tokens().batch(np.arange(6))
    assert all((a == b).all() for a, b in zip(*tokens))


def test_utterances_of_several_lines_come_back_from_minari(monkeypatch: pytest.MonkeyPatch):
    minari = pytest.importorskip("minari")
    texts = ["Board:\nx: 1\n", "crane", "a\x0bb\u2028c: d", "", "slate"]
    parties = ["user", "system", "user", "user", "system"]
    lines = [f"{party}: {text}\n" for party, text in zip(parties, texts)]
    episode = SimpleNamespace(
        observations=["".join(lines[:n]) for n in (1, 4, 5)],
        actions=["crane", "slate"],
        rewards=[0.0, 1.0],
        terminations=[False, True],
        truncations=[False, False],
        infos={"is_success": [False, False, True]},
    )
    stored = SimpleNamespace(
        env_spec=gym.spec("dialgym/Wordle-utterance-v0"),
        storage=SimpleNamespace(metadata={}, get_episode_metadata=lambda indices: [{}]),
        episode_indices=[0],
        iterate_episodes=lambda: [episode],
    )
    monkeypatch.setattr(minari, "load_dataset", lambda name: stored)
    found = [(turn["party"], turn["text"]) for turn in from_minari("x")[0]["turns"]]
    assert found == [*zip(parties, texts)]


def test_an_empty_dataset_is_loaded_as_one(games: Dataset, tmp_path: Path):
    games.filter(games["episode"] < 0).save(tmp_path)
    assert not len(dialgym.load_dataset(tmp_path))
    assert not list(dialgym.load_dataset(tmp_path, streaming=True))
    games.save(tmp_path / "more.parquet")
    assert len(dialgym.load_dataset(tmp_path)) == len(games)


def test_a_minari_dataset_imports_nothing_that_it_names(monkeypatch: pytest.MonkeyPatch):
    minari = pytest.importorskip("minari")
    row = {"name": "Wordle", "task": "subprocess:Popen", "description": ""}
    named: list[Any] = [
        {"env_id": {"id": "subprocess:Popen", "row": row, "view": "token"}},
        {"env_id": "subprocess:Popen"},
        {"env_id": "dialgym/Wordle-utterance-v0", "simulator": "subprocess:Popen"},
    ]
    for kwargs in named:
        spec = gym.envs.registration.EnvSpec("x-v0", MAKE_VIEW, kwargs=kwargs)
        stored = SimpleNamespace(env_spec=spec)
        monkeypatch.setattr(minari, "load_dataset", lambda name, stored=stored: stored)
        with pytest.raises(ValueError, match="dataset 'x': it names 'subprocess:Popen', which"):
            from_minari("x")


@pytest.mark.parametrize(
    ("env_id", "infos", "message"),
    [
        ("dialgym/Wordle-v0", {}, "utterance or act view of dialgym; .* is of dialgym/Wordle-v0"),
        ("dialgym/Wordle-utterance-v0", {}, r"'is_success' in the infos .* got none\. Record them"),
        (
            "dialgym/SlotFilling-act-v0",
            {"is_success": [True]},
            r"'action_mask' in .* got is_success\. .* text_info=False, action_masks=True\)",
        ),
    ],
)
def test_what_minari_lacks_is_one_clear_error(
    env_id: str, infos: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch
):
    minari = pytest.importorskip("minari")
    storage = SimpleNamespace(metadata={}, get_episode_metadata=lambda indices: [{}])
    stored = SimpleNamespace(
        env_spec=gym.spec(env_id),
        storage=storage,
        episode_indices=[0],
        iterate_episodes=lambda: [SimpleNamespace(infos=infos)],
    )
    monkeypatch.setattr(minari, "load_dataset", lambda name: stored)
    with pytest.raises(ValueError, match=message):
        from_minari("x")
