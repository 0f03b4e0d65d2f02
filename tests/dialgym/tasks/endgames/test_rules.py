"""Rules by hand, players, views with other settings, exact values."""

import numpy as np
import pytest

import dialgym
from dialgym.experiments.advantages import Decision, true_advantages
from dialgym.language import allows
from dialgym.tasks import ExactPosterior
from dialgym.tasks.endgames import Endgames
from dialgym.testing import check_batch, check_task, check_views

ROOK, QUEEN = Endgames(turns=20), Endgames("queen", turns=12)
MATE = "white Kf6 Rg1 black Kh8"
RNG = np.random.default_rng(0)


def begin(position, task=ROOK):
    return task.initial(RNG, {"position": position})


def say(state, *texts, task=ROOK):
    return [task.speak(state, text, RNG) for text in texts][-1]


def play(task, white, black, seed):
    """A dialogue by rules, and its return."""
    rng = np.random.default_rng(seed)
    state, total = task.initial(rng), 0.0
    players = [task.speaker_named(*each) for each in (("system", white), ("user", black))]
    while not state.over:
        text = players[state.black].reply(task, state, rng)
        total += task.speak(state, text, rng).rewards["system"]
    return state, total


def test_mate():
    state = begin("white Kf6 Ra7 black Kh8")
    assert say(state, "Kg6", "Kg8").rewards == {"system": 0.0, "user": 0.0}
    end = say(state, "Ra8")
    assert (end.terminated, end.success, end.rewards) == (True, True, {"system": 1.0, "user": -1.0})
    assert ROOK.metrics(state) == {"legal": 1.0, "efficiency": 1.0}


@pytest.mark.parametrize(
    ("position", "texts"),
    [
        ("white Kf7 Ra6 black Kh7", ["Rg6", "Kh8", "Kf8", "Kh7", "Rh6", "Kxh6"]),  # captured
        ("white Kb6 Rc2 black Ka8", ["Rc7", "Kb8", "Rb7", "Kc8", "Ra7", "Kb8", "Rc7", "Ka8",
                                     "Kc6", "Kb8", "Kd6", "Ka8", "Rb7", "Kxb7"]),
    ],
)  # fmt: skip
def test_a_captured_piece_is_a_draw(position, texts):
    end = say(begin(position), *texts)
    assert (end.terminated, end.success, end.rewards["system"]) == (True, False, 0.0)


def test_stalemate_is_a_draw():
    end = say(begin("white Kf7 Qa1 black Kh7", QUEEN), "Qg1", "Kh8", "Qg6", task=QUEEN)
    assert (end.terminated, end.success, end.rewards["system"]) == (True, False, 0.0)


def test_who_has_spoken_all_turns_draws():
    task = Endgames(turns=2)
    state = begin(MATE, task)
    say(state, "Rg2", "Kh7", "Rg1", task=task)
    assert not state.over
    assert say(state, "Kh8", task=task).terminated
    assert not state.mate


@pytest.mark.parametrize("text", ["Rh9", "Kg8", "Rf7", "", "resign", "Qg7", "h8h7", "g1f3"])
def test_what_is_no_legal_move_costs_one_and_changes_nothing(text):
    state = begin(MATE)
    before = state.squares.copy()
    outcome = say(state, text)
    assert outcome.rewards == {"system": -1.0, "user": 0.0}
    assert outcome.components["system"] == {"illegal": -1.0}
    assert (state.squares, state.black, state.over) == (before, False, False)
    assert [line.text for line in state.lines] == [MATE, text, "illegal"]
    assert [line.text for line in state.black_lines] == [MATE]


def test_illegal_moves_of_black_are_its_own():
    state = begin(MATE)
    outcome = say(state, "Rg2", "Kg8")
    assert outcome.rewards == {"system": 0.0, "user": -1.0}
    assert state.black
    assert [line.text for line in state.lines] == [MATE, "Rg2"]
    say(state, "Kh7")
    assert state.lines[-1].text == "white Kf6 Rg2 black Kh7"


@pytest.mark.parametrize("text", ["Rg2", "rg2", "R g 2", "Rg2+", "1. Rg2", "g1g2", "g1-g2", "G1G2"])
def test_notations(text):
    state = begin(MATE)
    say(state, text)
    assert state.squares[2] == 14


@pytest.mark.parametrize(
    ("position", "why"),
    [
        ("white Kf6 Qg1 black Kh8", "not of rook"),
        ("white Kf6 Rh1 black Kh8", "black is in check"),
        ("white Kg7 Ra1 black Kh8", "black is in check"),
        ("white Kf6 Rf6 black Kh8", "pieces on one square"),
        ("white Kf6 Rf9 black Kh8", "not a list of pieces"),
        ("8/8/8/8 w", "not of eight ranks"),
        ("8/8/3k4/8/3K4/8/8/7R b", "white to move"),
        ("8/8/3k4/8/3K4/8/8/7R - - 0 1", "white to move"),
        ("7k/8/5K2/8/8/8/8/6RR w - - 0 1", "of none of the endings"),
        (7, "got 7"),
    ],
)
def test_positions_that_cannot_be(position, why):
    with pytest.raises(ValueError, match=rf"option 'position' of Endgames: expected .*{why}"):
        begin(position)


def test_bishops_of_one_colour_are_refused():
    with pytest.raises(ValueError, match="two bishops of one colour"):
        begin("white Kf6 Ba1 Bc1 black Kh8", Endgames("bishops"))


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"ending": "knights"}, "ending of Endgames must be one of"),
        ({"within": 1}, "within of Endgames must be a whole number from 2; got 1"),
        ({"turns": 1}, "turns of Endgames must be a whole number from 2; got 1"),
        ({"shown": "all"}, "shown of Endgames must be one of"),
        ({"notation": "long"}, "notation of Endgames must be one of"),
        ({"constraint": "words"}, "constraint of Endgames must be one of"),
        ({"split": "dev"}, "split of Endgames must be one of"),
    ],
)
def test_refused_settings(settings, why):
    with pytest.raises(ValueError, match=why):
        Endgames(**settings)


@pytest.mark.parametrize("black", ["best", "weak", "random"])
@pytest.mark.parametrize("task", [ROOK, QUEEN])
def test_the_optimal_player_mates_as_soon_as_can_be(task, black):
    for seed in range(8):
        state, total = play(task, "optimal", black, seed)
        assert (state.mate, total) == (True, 1.0)
        assert (state.spoken[0] == state.moves) if black == "best" else (
            state.spoken[0] <= state.moves)  # fmt: skip


def test_players_differ_in_skill():
    means = [
        dialgym.evaluate(name, QUEEN, 60, [0]).mean_return
        for name in ("optimal", "greedy", "random-mixture", "random")
    ]
    assert means == sorted(means, reverse=True)
    assert means[0] == 1.0
    assert means[0] - means[-1] > 0.9


def test_data_is_of_three_kinds():
    data = dialgym.collect("Endgames-Queen-v0", "graded", 60, seed=0)
    kinds, returns = np.array([str(kind) for kind in data["kind"]]), data.returns
    means = [returns[kinds == kind].mean() for kind in ("poor", "mixed", "expert")]
    assert means == sorted(means)
    assert means[0] < 0.7 < means[2] == 1.0


@pytest.mark.parametrize(
    "settings",
    [
        {"shown": "fen", "notation": "uci"},
        {"shown": "moves", "constraint": "moves"},
        {"notation": "uci", "constraint": "moves", "shown": "board"},
        {"constraint": None},
    ],
)
def test_views_agree_by_other_settings(settings):
    task = Endgames("queen", within=4, turns=5, **settings)
    check_task(task, episodes=3)
    check_views(task, episodes=1)
    check_batch(task, steps=16)


def test_masks_of_text_are_legal_moves():
    state = begin(MATE)
    constraint = ROOK.constraint(state, "system")
    assert allows(constraint, "Rg2")
    assert not allows(constraint, "Rh2x")
    assert not allows(constraint, "Rf7")
    assert allows(Endgames(constraint="moves").constraint(state, "system"), "Rf7")


def test_exact_values():
    state = begin("white Kf6 Ra7 black Kh8")
    assert ROOK.mate_in(state.kinds, state.squares) == 2
    assert ROOK.best_return(state) == 1.0
    assert Endgames(turns=2).best_return(state) == 1.0
    state.spoken[0] = 19
    assert ROOK.best_return(state) == 0.0


class Legal:
    """Any legal act."""

    def predict(self, seen, state=None, episode_start=None, deterministic=False, action_masks=None):
        return np.array([int(np.flatnonzero(mask)[0]) for mask in action_masks]), None


def test_turns_are_credited_exactly():
    """Of two moves, one mates and one lets black out: the truth tells them apart."""
    env = dialgym.make("Endgames-act-v0", turns=2).unwrapped
    assert isinstance(env.task, ExactPosterior)
    env.reset(seed=0, options={"position": "white Kg6 Ra7 black Kh8"})
    names = list(env.act_names)
    moves = [np.array([names.index(name)]) for name in ("Ra8", "Rb7")]
    decisions = [Decision(env.clone_state(), move, at, 0.0) for at, move in enumerate(moves)]
    truth = true_advantages(Legal(), "Endgames-act-v0", decisions, 4, 0, {"turns": 2}, 8)
    np.testing.assert_allclose(truth.advantages + truth.values, [1.0, 0.0])
