"""The pickles of ILQL's scripts: read without running anything, held again in the same colours."""

import copy
import enum
import pickle
import sys
from types import ModuleType

import numpy as np
import pytest

import dialgym
from dialgym.tasks.wordle import Wordle
from dialgym.tasks.wordle.game_pickle import read_game_pickle
from tests.dialgym.datasets.test_datasets_generators import colours, guesses

ANSWERS = ["could", "shard", "light", "their", "whack", "alarm", "crane"]
RULES = {"answers": ANSWERS, "guesses": "any", "feedback": "ilql"}


class CharKnowledge(enum.Enum):
    NOT_HERE = 0
    POSSIBLE = 1
    HERE = 2


class CharState:
    def __init__(self) -> None:
        self.position_knowledge = [CharKnowledge.POSSIBLE] * 5


class WordleState:
    """ILQL's, as far as its pickles go; `heard` is its `transition_state`."""

    def __init__(self) -> None:
        self.state = [CharState() for _ in range(26)]

    def heard(self, guess: str, target: str) -> "WordleState":
        after = copy.deepcopy(self)
        for place, letter in enumerate(guess):
            known = after.state[ord(letter) - ord("a")].position_knowledge
            if letter == target[place]:
                known[place] = CharKnowledge.HERE
            elif letter in target:
                known[place] = CharKnowledge.NOT_HERE
            else:
                known[:] = [CharKnowledge.NOT_HERE] * 5
        return after


@pytest.fixture
def original(monkeypatch):
    """The module that the pickles name, while they are written."""
    module = ModuleType("wordle.wordle_game")
    for kind in (CharKnowledge, CharState, WordleState):
        monkeypatch.setattr(kind, "__module__", module.__name__)
        setattr(module, kind.__name__, kind)
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "wordle", ModuleType("wordle"))
        patch.setitem(sys.modules, module.__name__, module)
        yield


GAMES = [
    ("shard", ["crane", "aahed", "alarm", "shard"], {"kind": "expert"}),
    ("light", ["could", "could", "could", "could", "could", "could"], {"kind": "adversarial"}),
    ("whack", ["their", "abc", "whack"], {}),
]


def write(path, games, **more):
    rows = []
    for target, actions, meta in games:
        state = WordleState()
        for guess in actions:
            state = state.heard(guess, target) if len(guess) == 5 else state
        row = {"state": state, "actions": actions}
        rows.append({**row, "meta": {**meta, "s_0": (WordleState(), [])}} if meta else row)
    content = {"state_actions": rows, "vocab_path": "words.txt", "vocab_cache_path": None, **more}
    path.write_bytes(pickle.dumps(content))
    return path


def test_stored_games_are_held_again_in_their_colours(original, tmp_path):
    path = write(tmp_path / "games.pkl", GAMES)
    settings = {"path": str(path)}
    dataset = dialgym.collect("Wordle-v0", "pickle", 3, env_kwargs=RULES, policy_kwargs=settings)
    assert [guesses(row) for row in dataset] == [actions for _, actions, _ in GAMES]
    assert dataset["kind"].tolist() == ["expert", "adversarial", ""]
    assert dataset.returns.tolist() == [-3.0, -6.0, -2.0]
    assert colours(dataset[0]) == ["b y g b b", "y y y b g", "y b g g b", "g g g g g"]
    again = dialgym.collect("Wordle-v0", "pickle", 3, env_kwargs=RULES, policy_kwargs=settings)
    assert again.table.equals(dataset.table)


def test_the_secret_agrees_with_the_last_state_alone(original, tmp_path):
    letters = Wordle(**RULES).answer_letters
    (game,) = read_game_pickle(write(tmp_path / "a.pkl", [("light", ["could"], {})]))
    # c, o, u and d are not in it; l is, though not in the fourth place
    assert np.array(ANSWERS)[game.allows(letters)].tolist() == ["light", "alarm"]
    (game,) = read_game_pickle(write(tmp_path / "c.pkl", [("light", ["xlxxx", "lxxxx"], {})]))
    assert np.array(ANSWERS)[game.allows(letters)].tolist() == ["light"]
    (game,) = read_game_pickle(write(tmp_path / "b.pkl", [("light", ["zzzzz"], {})]))
    assert game.allows(letters).all()


def test_games_of_a_split_alone_are_held_again(original, tmp_path):
    """Of the secrets, shard is of train, light of validation, whack of test."""
    settings = {"path": str(write(tmp_path / "games.pkl", [GAMES[0], GAMES[2]]))}
    for split, (_, actions, _) in (("train", GAMES[0]), ("test", GAMES[2])):
        rules = {**RULES, "split": split}
        rows = dialgym.collect("Wordle-v0", "pickle", 1, env_kwargs=rules, policy_kwargs=settings)
        assert [guesses(row) for row in rows] == [actions]
    with pytest.raises(ValueError, match="none agrees with an answer of the split 'validation'"):
        dialgym.collect(
            "Wordle-v0", "pickle", 1, env_kwargs={**RULES, "split": "validation"},
            policy_kwargs=settings,
        )  # fmt: skip


def test_a_game_that_no_answer_agrees_with_is_told(original, tmp_path):
    path = write(tmp_path / "games.pkl", [("pizza", ["pizza"], {})])
    with pytest.raises(ValueError, match="no answer of this Wordle agrees with game 0, pizza"):
        dialgym.collect(
            "Wordle-v0", "pickle", 1, env_kwargs=RULES, policy_kwargs={"path": str(path)}
        )
    with pytest.raises(ValueError, match=r"stored games: expected a Wordle with secret='fixed'"):
        dialgym.collect("Wordle-ILQL-v0", "pickle", 1, policy_kwargs={"path": str(path)})


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"no pickle", r"expected the pickle of ILQL's scripts"),
        (b"cos\nsystem\n(S'false'\ntR.", r"it holds os\.system, and only games are read"),
        (b"cbuiltins\ngetattr\n(S'a'\nS'b'\ntR.", r"it holds an attribute, and only games"),
        (pickle.dumps({"state_actions": []}), "its state_actions are list"),
        (pickle.dumps({"state_actions": [{"state": 1, "actions": []}]}), "a game is not of a st"),
        (b"cwordle.wordle_game\nCharKnowledge\n(I7\ntR.", "knowledge of a letter is not 0 to 2"),
    ],
)
def test_a_pickle_runs_nothing(content, message, tmp_path):
    (tmp_path / "a.pkl").write_bytes(content)
    with pytest.raises(ValueError, match=message):
        read_game_pickle(tmp_path / "a.pkl")
    with pytest.raises(ValueError, match="Check the path"):
        read_game_pickle(tmp_path / "b.pkl")
