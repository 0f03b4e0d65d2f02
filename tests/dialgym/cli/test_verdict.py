"""Subjective success: a person says at the end if the user was served; kept, and learned from."""

import json

import pytest

from dialgym.viewer.api import open_viewer
from dialgym.viewer.query import Query
from dialgym.viewer.ratings import SUCCESSES, Ratings, success_row
from tests.support.commands import run, succeed

SLOTS = "dialgym/SlotFilling-utterance-v0"
PLAY = ("play", SLOTS, "--as", "user", "--seed", "3")
KEYS = "I want something in the north.\nbye\n"


def kept(folder):
    return [json.loads(line) for line in (folder / "successes.jsonl").read_text().splitlines()]


@pytest.mark.parametrize(("answer", "score"), [("y", 1), ("no", 0)])
def test_who_has_played_is_asked_at_the_end(tmp_path, answer, score):
    text = succeed(*PLAY, "--ratings", str(tmp_path), keys=f"{KEYS}{answer}\n")
    assert "Did you get all that you wanted? (y/n)" in text
    (row,) = kept(tmp_path)
    assert row["score"] == score
    said = [*row["context"], row["reply"]]
    assert "i want something in the north." in " ".join(said).lower()
    assert not any("You are looking for" in line for line in said)  # the goal stays private
    assert (row["env"], row["seed"]) == (SLOTS, 3)


def test_nobody_is_asked_unless_that_is_wanted(tmp_path):
    assert "(y/n)" not in succeed(*PLAY, keys=KEYS)
    watched = ("play", SLOTS, "--policy", "handcrafted", "--ratings", str(tmp_path))
    assert "(y/n)" not in succeed(*watched)
    assert not (tmp_path / "successes.jsonl").exists()


def test_a_folder_that_cannot_keep_the_answer_is_told_before_the_dialogue(tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "successes.jsonl").write_text("{}\n", encoding="utf-8")
    for folder in (tmp_path / "file", tmp_path):
        result = run(*PLAY, "--ratings", str(folder), keys=KEYS)
        assert (result.exit_code, result.stdout) == (2, "")
        assert str(folder) in result.stderr


def test_another_answer_is_asked_again_and_none_keeps_nothing(tmp_path):
    result = run(*PLAY, "--ratings", str(tmp_path / "a"), keys=f"{KEYS}maybe\nyes\n")
    assert "expected y or n" in result.stderr
    assert [row["score"] for row in kept(tmp_path / "a")] == [1]
    succeed(*PLAY, "--ratings", str(tmp_path / "b"), keys=KEYS)
    assert not (tmp_path / "b" / "successes.jsonl").exists()


def test_a_chat_ends_with_the_question(tmp_path):
    pytest.importorskip("agents")
    from tests.support.toy_talk import taught

    taught(1).save(tmp_path / "model.zip")
    command = ("chat", "-m", str(tmp_path / "model.zip"), "--seed", "0", "--ratings", str(tmp_path))
    text = succeed(*command, keys="who are you?\nbye\n/quit\nn\n")
    assert text.endswith("Goodbye.\n")
    (row,) = kept(tmp_path)
    assert (row["context"][0], row["context"][2], row["score"]) == ("who are you?", "bye", 0)
    assert "(y/n)" not in succeed(*command, keys="/quit\n")  # nothing was said


def test_the_viewer_asks_too(tmp_path):
    pytest.importorskip("fastapi")
    viewer = open_viewer([], tmp_path)
    game = viewer.begin(Query({"env": SLOTS, "party": "user", "seed": 3}))["game"]
    with pytest.raises(ValueError, match="the dialogue is not over"):
        viewer.judge(Query({"game": game, "served": True}))
    shown = viewer.say(Query({"game": game, "text": "bye", "sure": True}))
    while not shown["over"]:
        shown = viewer.say(Query({"game": game, "text": "bye", "sure": True}))
    assert viewer.judge(Query({"game": game, "served": True}))[SUCCESSES] == 1
    viewer.judge(Query({"game": game, "served": False}))  # another mind
    assert [row["score"] for row in kept(tmp_path)] == [0]


@pytest.mark.slow
def test_a_model_learns_who_is_served(tmp_path):
    pytest.importorskip("transformers")
    agents = pytest.importorskip("agents")
    from dialgym.rewards import Reply, make_rewards

    ratings, ends = Ratings(tmp_path / "ratings"), ("wrong", "thanks")
    for number in range(160):
        texts = ["hello", f"number {number}", ends[number % 2]]
        ratings.put(SUCCESSES, success_row(texts, bool(number % 2), "mine"))
    small = {"layers": 1, "width": 32, "heads": 2, "batch_size": 8, "learning_rate": 3e-3}
    trained = agents.train_reward_model(
        ratings.file(SUCCESSES), tmp_path / "model", epochs=8, threshold=0.5, max_length=32, **small
    )
    assert trained.metrics["kind"] == "labels"
    judge = {"model": str(trained.folder), "values": [0, 20]}
    dialogues = [Reply(end, ("hello", "number 7")) for end in ends]
    assert make_rewards({"learned": judge}).score(dialogues)["learned"].tolist() == [0.0, 20.0]
