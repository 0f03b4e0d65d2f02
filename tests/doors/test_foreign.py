"""Environments of others, wherever an id is taken: one of Gymnasium's registry."""

import gymnasium as gym
import numpy as np
import pytest
from typer.testing import CliRunner

import dialgym
from dialgym.bridges.foreign import (
    ForeignState,
    ForeignTask,
    NoRoomError,
    NotReproducible,
    quoted_move,
)
from dialgym.bridges.gymnasium import GymnasiumTask
from dialgym.cli.app import app
from dialgym.errors import ServiceError
from dialgym.experiments.panel import Panel
from dialgym.registry import check_id, entry_of
from dialgym.testing.sessions import Answer, TextEnvironment
from dialgym.trust import check_names
from dialgym.views.saved import dialogues_from_json, dialogues_to_json
from tests.support import tiny_panel
from tests.support.faulty_environments import TURNS, WORDS, GuessWord

ID = "gymnasium:own/GuessWord-v0"


@pytest.fixture(autouse=True)
def registered():
    gym.register("own/GuessWord-v0", entry_point=GuessWord)
    gym.register("own/Unseeded-v0", entry_point=GuessWord, kwargs={"defect": "seed ignored"})
    gym.register("own/NaN-v0", entry_point=GuessWord, kwargs={"defect": "reward is NaN"})
    yield
    for name in ("GuessWord", "Unseeded", "NaN"):
        del gym.registry[f"own/{name}-v0"]


def run(*words):
    return CliRunner().invoke(app, [*words])


def exhaust(call):
    """Call until an error, at most a hundred times."""
    for _ in range(100):
        call()


def test_the_view_gives_what_the_environment_gives():
    plain, ours = GuessWord(), dialgym.make(ID)
    for seed in range(20):
        text, _ = plain.reset(seed=seed)
        seen, _ = ours.reset(options={"seed": seed})
        heard, lines = text, [f"user: {text}"]
        assert seen == f"{lines[0]}\n"
        for word in WORDS:
            text, *result, info = plain.step(word)
            seen, *same, told = ours.step(word)
            lines += [f"system: {word}", f"user: {text.removeprefix(heard)}"]
            assert seen == "\n".join(lines) + "\n"
            assert same == result
            assert told["is_success"] == info["is_success"]
            heard = text
            if result[1]:
                break


def test_a_seed_is_drawn_from_that_of_the_view():
    env = dialgym.make(ID)
    first, again, other = (env.reset(seed=seed)[0] for seed in (1, 1, 4))
    assert first == again
    assert env.unwrapped.dialogue.state.seed != 4
    assert {first, other}  # openings may be alike: they name a letter


def test_batches_chats_and_policies():
    batch = dialgym.make_vec(ID, num_envs=3)
    batch.reset(seed=2)
    _, reward, _, _, _ = batch.step(("apple", "bread", "chair"))
    assert reward.shape == (3,)
    chat = dialgym.Chat(ID)
    assert chat.reset(seed=0)[-1]["content"].startswith("Guess a word")
    assert chat.step("apple").text.strip()
    result = dialgym.evaluate("quoted-moves", ID, episodes=4, seeds=[0])
    assert np.all(result.overall.lengths <= TURNS)


def test_dialogues_are_collected_and_read_again(tmp_path):
    stored = dialgym.collect(ID, "quoted-moves", 5, path=tmp_path / "data")
    again = dialgym.load_dataset(tmp_path / "data")
    assert len(stored) == len(again) == 5


def test_a_dialogue_goes_on_from_a_copy_and_from_a_file():
    task = GymnasiumTask("own/GuessWord-v0")
    env = dialgym.make(ID).unwrapped
    env.reset(seed=3)
    env.step("apple")
    written = dialogues_to_json([env.clone_state()], env.task, str)
    (saved,) = dialogues_from_json(written, env.task, str)
    expected = env.step("zebra")[:4]
    fresh = dialgym.make(ID).unwrapped
    fresh.restore_state(saved)
    assert fresh.step("zebra")[:4] == expected
    state = saved.state
    assert isinstance(state, ForeignState)
    assert task.transcript(state, "system") == state.lines


def test_a_copy_of_what_ignores_its_seed_is_refused():
    env = dialgym.make("gymnasium:own/Unseeded-v0").unwrapped
    env.reset(seed=0)

    def gone_on():
        env.reset()
        saved = env.clone_state()
        env.step("apple")
        env.restore_state(saved)
        env.step("apple")

    with pytest.raises(NotReproducible, match="dialgym check gymnasium:own/Unseeded-v0"):
        exhaust(gone_on)


def test_a_module_named_before_an_id_is_imported(tmp_path, monkeypatch):
    (tmp_path / "registers_it.py").write_text(
        "import gymnasium\n"
        "gymnasium.register('own/Later-v0', gymnasium.spec('own/GuessWord-v0').entry_point)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    env = dialgym.make("gymnasium:registers_it:own/Later-v0")
    assert env.reset(options={"seed": 0})[0]


def test_a_dialogue_is_cut_at_the_turns_of_its_setting():
    env = dialgym.make(ID, turns=2)
    env.reset(options={"seed": 0})
    assert env.step("qqqqq")[2:4] == (False, False)
    assert env.step("qqqqq")[2:4] == (False, True)


def test_many_open_dialogues_are_held_within_bounds():
    task = GymnasiumTask("own/GuessWord-v0")
    rng = np.random.default_rng(0)
    states = [task.initial(rng, {"seed": seed}) for seed in range(200)]
    outcomes = [task.speak(state, "qqqqq", rng) for state in states]
    assert {outcome.rewards["system"] for outcome in outcomes} == {-0.1}


def test_a_reward_that_is_no_number_is_refused():
    env = dialgym.make("gymnasium:own/NaN-v0")
    env.reset(options={"seed": 0})
    with pytest.raises(ValueError, match=r"gave the reward nan; expected a finite number"):
        exhaust(lambda: env.step("qqqqq"))


@pytest.mark.parametrize(
    ("id", "message"),
    [
        ("gymnasium:own/Nothing-v0", "Gymnasium knows no environment 'own/Nothing-v0'"),
        ("gymnasium:CartPole-v1", "expected an action space of strings"),
        ("gymnasium:no_such_module:It-v0", "Gymnasium knows no environment"),
    ],
)
def test_what_cannot_be_played(id, message):
    with pytest.raises(ValueError, match=message):
        dialgym.make(id)


@pytest.mark.parametrize(
    "name", ["gymnasium:a/B-v0", "textarena:C-v0", "openenv:http://no.where", "verifiers:a-package"]
)
def test_files_may_name_none_until_a_caller_has(name):
    with pytest.raises(ValueError, match="could run code"):
        check_id(name, "a file")
    with pytest.raises(ValueError, match="could run code"):
        check_names({"id": name}, "a file")
    entry_of(name)
    check_id(name, "a file")


def test_the_command_line_takes_it():
    checked = run("check", ID, "-n", "10")
    assert checked.exit_code == 0, checked.output
    assert checked.output.count(f"{ID}: ") == 8
    assert checked.output.count("✓") == 6
    faulty = run("check", "gymnasium:own/Unseeded-v0", "-n", "10", "--json")
    assert faulty.exit_code == 1
    assert '"verdict": "fail"' in faulty.output
    played = run("play", ID, "--policy", "quoted-moves", "--seed", "1")
    assert played.exit_code == 0
    assert "The secret word was" in played.output


def test_moves_are_those_that_were_quoted():
    rng = np.random.default_rng(0)
    heard = ["[GAME] Say [Hit] or [Stand].", "[Player] [other]"]
    assert {quoted_move(heard, rng) for _ in range(50)} == {"[Hit]", "[Stand]"}
    assert all(quoted_move(["a number, such as [5]"], rng)[0] == "[" for _ in range(20))
    assert {quoted_move([], rng) for _ in range(50)} > {"yes"}


def test_a_panel_has_it_and_its_row_is_played_again(tmp_path, monkeypatch):
    environment = {"id": ID, "goals": [{"seed": 1}, {"seed": 2}]}
    values = {**tiny_panel.VALUES, "environments": [environment], "references": ["random"]}
    panel = Panel.of("tiny", {**values, "algorithms": {}})
    tiny_panel.install(monkeypatch, panel)
    rows = str(tmp_path / "rows")
    added = run("leaderboard", "add", "tiny", "quoted-moves", "--name", "mine", "--out", rows)
    assert added.exit_code == 0, added.output
    assert "| 1 | mine |" in run("leaderboard", "show", "tiny", "--results", rows).output
    assert "played again alike" in run("leaderboard", "check", rows, "--replay").output


class Small:
    """A server of few sessions, whose answers say how often it has been spoken to."""

    def __init__(self, most, slow=0):
        self.most, self.open, self.slow, self.refused = most, [], slow, 0
        self.gone = False

    def task(self):
        server = self

        class SmallTask(ForeignTask):
            scheme = "small"

            def find(self):
                return TextEnvironment(self.name, lambda: SmallSession(server), None)

        return SmallTask(f"server-{id(self)}")


class SmallSession:
    def __init__(self, server):
        self.server, self.said = server, 0

    def reset(self, seed, options=None):
        if len(self.server.open) >= self.server.most or self.server.slow:
            self.server.slow = max(0, self.server.slow - 1)
            self.server.refused += 1
            raise NoRoomError("1/1 sessions active")
        self.server.open.append(self)
        return Answer(f"begun by {seed}")

    def step(self, text):
        self.said += 1
        if text == "break":
            raise ServiceError("broken")
        return Answer(f"said {self.said}", 1.0, text == "end")

    def close(self):
        if self in self.server.open:
            self.server.open.remove(self)
        if self.server.gone:
            raise ServiceError("gone")


RNG = np.random.default_rng(0)


def test_a_dialogue_that_is_left_makes_room_for_the_next():
    server = Small(1)
    chat = dialgym.Chat(server.task())
    for seed in range(3):
        chat.reset(seed)
        assert chat.step("go").text == "said 1"
    assert len(server.open) == 1
    cut = dialgym.Chat(server.task(), max_episode_steps=1)  # of the same server
    for seed in range(3):
        cut.reset(seed)
        assert cut.step("go").over
    assert chat.step("go").text == "said 2"  # made again


def test_a_server_that_is_gone_after_the_last_turn_takes_nothing_of_it():
    server = Small(1)
    chat = dialgym.Chat(server.task())
    chat.reset(0)
    server.gone = True
    assert chat.step("end")[1:4:2] == (1.0, True)


def test_a_session_that_breaks_while_it_is_made_again_is_closed():
    server = Small(1)
    task = server.task()
    state = task.initial(RNG, {"seed": 1})
    task.speak(state, "go", RNG)
    task.close()
    state.lines[1] = state.lines[1]._replace(text="break")
    with pytest.raises(ServiceError, match="broken"):
        task.speak(state, "go", RNG)
    assert server.open == []


def test_more_dialogues_than_sessions_are_played_in_turns():
    server = Small(2)
    task = server.task()
    states = [task.initial(RNG, {"seed": seed}) for seed in range(5)]
    for turn in (1, 2, 3):
        for state in states:
            task.speak(state, "go", RNG)
            assert state.lines[-1].text == f"said {turn}"
    assert len(server.open) == 2


def test_sessions_of_dialogues_that_nobody_holds_are_closed():
    server = Small(100)
    task = server.task()
    left, kept = (task.initial(RNG, {"seed": seed}) for seed in (1, 2))
    copied = left.copy()
    del left
    task.initial(RNG, {"seed": 3})
    assert len(server.open) == 3  # one is the copy's
    del copied
    last = task.initial(RNG, {"seed": 4})
    assert len(server.open) == 2
    task.close()
    assert server.open == []
    assert [task.speak(state, "go", RNG).rewards["system"] for state in (kept, last)] == [1, 1]


@pytest.mark.parametrize(
    "make", [dialgym.make, lambda id: dialgym.make_vec(id, 3), dialgym.Chat, dialgym.aec_env]
)
def test_a_closed_view_leaves_no_session_open(make):
    view, other = make(ID), dialgym.make(ID)
    other.reset(seed=0)
    before = len(GuessWord.open_games)
    view.reset(seed=1)
    assert len(GuessWord.open_games) > before
    view.close()
    assert len(GuessWord.open_games) == before  # those of others go on


def test_a_session_that_fails_is_closed():
    server = Small(1)
    task = server.task()
    state = task.initial(RNG)
    with pytest.raises(ServiceError, match="broken"):
        task.speak(state, "break", RNG)
    assert server.open == []


def test_a_server_without_room_is_one_error_that_says_how_many_were_closed(monkeypatch):
    monkeypatch.setattr("dialgym.bridges.foreign.PAUSES", (0.0,))
    told = r"^small:server-\d+: no room for a further session \(1/1 sessions active\); {} of this"
    with pytest.raises(ServiceError, match=told.format(0) + r".*max_concurrent_envs"):
        Small(0).task().initial(RNG)
    server = Small(1)
    task = server.task()
    first = task.initial(RNG)
    server.most = 0  # others have taken the place of what is closed
    with pytest.raises(NoRoomError, match=told.format(1)):
        task.initial(RNG)
    server.most = 1
    assert task.speak(first, "go", RNG).rewards["system"] == 1


def test_a_server_that_lets_go_slowly_is_asked_again(monkeypatch):
    monkeypatch.setattr("dialgym.bridges.foreign.PAUSES", (0.0, 0.0))
    server = Small(2)
    task = server.task()
    states = [task.initial(RNG) for _ in range(2)]
    server.slow = 3
    states.append(task.initial(RNG))
    assert (server.refused, len(server.open)) == (3, 2)  # one was closed, not both
