"""LMRL-Gym's data: written as its loaders read it, and read back as the dialogues were."""

import json

import pytest

import dialgym
from dialgym.datasets.foreign import Choices, import_dialogues
from tests.support.commands import fail, succeed


def read(rows, folder):
    import_dialogues(rows, folder)
    return [
        (
            [(turn["party"], turn["text"], turn["reward"]) for turn in row["turns"]],
            row["success"],
            row["truncated"],
        )
        for row in dialgym.load_dataset(folder)
    ]


def test_a_sequence_of_words(tmp_path):
    """As its `data_gen.py` writes them: letters apart, rewards of all texts but the opening."""
    rows = [
        {
            "sequence": [
                *(["Wordle:\n", 0.0], ["c r a n e\n", 1.0], ["b y b b g\n", 0.0]),
                *(["s h i r e\n", 1.0], ["g g g g g\n", 0.0]),
            ],
            "reward": [-1.0, 0.0, 0.0, 0.0],
            "done": True,
        },
        {
            "sequence": [["Wordle:\n", 0.0], ["c r a n e\n", 1.0], ["b y b b g\n", 0.0]],
            "reward": [-1.0, 0.0],
            "done": False,
        },
    ]
    (tmp_path / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    first, second = read(tmp_path / "data.jsonl", tmp_path / "out")
    crane = [("system", "crane", -1), ("user", "b y b b g", 0)]
    assert first == ([*crane, ("system", "shire", 0), ("user", "g g g g g", 0)], True, False)
    assert second == (crane, False, True)


def test_a_conversation_of_questions(tmp_path):
    """The last question of a correct one costs nothing; one that stops early is cut off."""
    rows = [
        {"lines": ["Is it alive? No.", "Is it a pen? Yes."], "correct": True, "word": ["Pen"]},
        {"lines": ["Is it big? Or small? No."], "correct": False, "word": ["Pen"]},
        {"lines": ["Is it alive? No."] * 20, "correct": False, "word": ["Pen"]},
    ]
    (tmp_path / "train.json").write_text(json.dumps(rows))
    found = read(tmp_path / "train.json", tmp_path / "out")
    alive = [("system", "Is it alive?", -1), ("user", "no", 0)]
    assert found[0] == ([*alive, ("system", "Is it a pen?", 0), ("user", "yes", 0)], True, False)
    assert found[1] == ([("system", "Is it big? Or small?", -1), ("user", "no", 0)], False, True)
    assert found[2] == (alive * 20, False, False)


@pytest.mark.parametrize(
    ("env_id", "policy", "ending"),
    [
        ("dialgym/Wordle-431-v0", "random-mixture", ".jsonl"),
        ("dialgym/Wordle-v0", "random", ".jsonl"),
        ("dialgym/TwentyQuestions-v0", "graded", ".json"),
        ("dialgym/TwentyQuestions-16-v0", "random", ".json"),
        ("dialgym/GuessMyCity-v0", "random", ".json"),
    ],
)
def test_what_is_written_is_read_as_it_was(env_id, policy, ending, tmp_path):
    games = dialgym.collect(env_id, policy, 12, seed=0, path=tmp_path / "games")
    file, folder = tmp_path / f"lmrl{ending}", tmp_path / "again"
    succeed("data", "export", str(tmp_path / "games"), "--out", str(file), "--form", "lmrl-gym")
    import_dialogues(file, folder, Choices(task=env_id))
    again = dialgym.load_dataset(folder)
    for one, other in zip(games, again, strict=True):
        for column in ("party", "text", "said", "reward"):
            both = [[turn[column] for turn in row["turns"]] for row in (one, other)]
            assert both[0] == both[1]
        assert [one[name] == other[name] for name in ("success", "terminated")] == [True, True]


def test_questions_are_split_as_lmrl_gym_splits_them(tmp_path):
    games = dialgym.collect("dialgym/GuessMyCity-v0", "greedy", 12, seed=0)
    games.export(tmp_path / "cities.json", form="lmrl-gym")
    for row, game in zip(json.loads((tmp_path / "cities.json").read_text()), games, strict=True):
        for line in row["lines"]:
            *question, answer = line.split("? ")
            assert question
            assert answer in ("Yes.", "No.")
        assert row["correct"]
        assert game["turns"][-2]["text"] == f"is it {row['word'][0]}?"


def test_mistakes_are_one_clear_error(tmp_path):
    wrong = {"sequence": [["Wordle:\n", 0], ["c r a n e\n", 1]], "reward": [], "done": True}
    good = {"lines": ["Is it a pen? Yes."], "correct": True, "split": "train"}
    rows = [wrong, {"lines": ["Is it?"], "correct": True}, good]
    left_out = "; ".join(import_dialogues(rows, tmp_path / "out").left_out)
    assert "rewards of 0 of 2 texts" in left_out
    assert "lines that are no question and answer" in left_out
    assert len(dialgym.load_dataset(tmp_path / "out")) == 1
    maze = dialgym.collect("dialgym/Maze-v0", "random", 2, seed=0, path=tmp_path / "maze")
    with pytest.raises(ValueError, match=r"the task of dialogues in LMRL-Gym's form must be one"):
        maze.export(tmp_path / "maze.jsonl", form="lmrl-gym")
    words = dialgym.collect("dialgym/Wordle-20-v0", "random", 2, seed=0)
    with pytest.raises(ValueError, match=r"ending .* of Wordle in LMRL-Gym's form must be .*'.jso"):
        words.export(tmp_path / "words.json", form="lmrl-gym")
    import_dialogues([{**good, "lines": ["Is it? Yes."]}] * 2, tmp_path / "own",
                     Choices(task="dialgym/TwentyQuestions-v0"))  # fmt: skip
    own = dialgym.load_dataset(tmp_path / "own")
    own.export(tmp_path / "own.json", form="lmrl-gym")
    assert [row["word"] for row in json.loads((tmp_path / "own.json").read_text())] == [[], []]
    given = ["data", "export", str(tmp_path / "maze"), "--out", str(tmp_path / "x.csv")]
    assert "form of an export must be one of 'lmrl-gym'" in fail(*given, "--form", "other")


def test_messages_keep_that_a_dialogue_was_cut_off(tmp_path):
    said = [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Good day."}]
    rows = [{"messages": said, "reward": 1, "truncated": cut} for cut in (True, False)]
    import_dialogues(rows, tmp_path / "once")
    once = dialgym.load_dataset(tmp_path / "once")
    once.export(tmp_path / "again.jsonl")
    import_dialogues(tmp_path / "again.jsonl", tmp_path / "twice")
    for dataset in (once, dialgym.load_dataset(tmp_path / "twice")):
        assert dataset["truncated"].tolist() == [True, False]
        assert dataset["terminated"].tolist() == [False, True]
