"""`dialgym play`: a person, or a policy, holds a dialogue at the terminal."""

import pytest

import dialgym
from dialgym.cli.play import rules
from dialgym.registry import entries, make_task
from dialgym.simulators import Speaker
from dialgym.simulators.human import HumanSpeaker, allows
from dialgym.tasks.wordle import Wordle
from tests.support.commands import fail, run, succeed
from tests.support.players import SMALL, FixedTokens


def test_a_person_solves_a_game():
    text = succeed("play", SMALL, "-o", "word=sleep", "--seed", "1", keys="WHITE\nsleep\n")
    assert "user: b b b b y" in text
    assert "user: g g g g g" in text
    assert "(user, in private: sleep)" in text
    assert "Solved in 2 turns, return -1. seed 1" in text


def test_the_same_seed_gives_the_same_game():
    keys = "white\ncrisp\nstock\nlevel\nangry\nphase\n"
    first, second = (succeed("play", SMALL, "--seed", "5", keys=keys) for _ in range(2))
    assert first == second


def test_hints_tell_what_is_left():
    text = succeed("play", SMALL, "-o", "word=sleep", "--hints", keys="white\nsleep\n")
    assert "20 possible, hint: " in text
    assert "2 possible, hint: " in text


def test_hints_are_for_who_plays():
    assert "--hints: for who plays" in fail("play", SMALL, "--policy", "optimal", "--hints")


def test_an_option_that_is_a_word_of_yaml_stays_a_word():
    assert "Goodbye" in succeed("play", "Wordle-v0", "-o", "word=false", keys="/quit\n")


def test_what_the_rules_do_not_foresee_is_asked_again():
    text = succeed("play", SMALL, "-o", "word=sleep", keys="zzzzz\nsleep\n")
    assert "'zzzzz' is not what the rules foresee here" in text
    assert "Solved in 1 turn, return 0." in text
    assert "user: invalid" in succeed(
        "play", SMALL, "-o", "word=sleep", keys="zzzzz\nzzzzz\nsleep\n"
    )


def test_it_begins_with_the_game_and_the_turns():
    text = succeed("play", SMALL, keys="")
    assert text.startswith("dialgym/Wordle-20-v0\nTwenty common words")
    assert "Guess the secret word of five letters." in text
    assert "You are the system, and have at most 6 turns." in text
    assert "Choose the secret word, in private" in succeed("play", SMALL, "--as", "user", keys="")
    assert "have 1 turn." in succeed("play", "Comments-v0", keys="")
    assert "(built-in)" in succeed("play", "CamRestaurants-Env1-v0", keys="")


def test_help_tells_the_rules_and_what_is_legal():
    text = succeed("play", SMALL, keys="/help\n")
    assert "Rewards: -1 for each guess that is not the secret" in text
    assert "`" not in text
    assert "You may say one of 20 utterances, such as: angry, brand" in text
    assert "/undo   Take back what you said last." in text
    assert "You may say any text of up to 400 characters" in succeed(
        "play", "Comments-v0", keys="/help\n"
    )


def test_undo_takes_back_the_last_utterance_and_no_other():
    keys = "white\nlevel\n/undo\n/undo\n/undo\nlevel\nsleep\n"
    result = run("play", SMALL, "-o", "word=sleep", keys=keys)
    assert "Taken back: level" in result.stdout
    assert "Taken back: white" in result.stdout
    assert "Solved in 2 turns, return -1." in result.stdout
    assert "nothing to take back yet" in result.stderr


@pytest.mark.parametrize("id", ["SlotFilling-v0", "CamRestaurants-Env3-v0"])
def test_what_was_taken_back_leaves_no_trace(id):
    twice = ["--seed", "3", "--set", "turns=5"]
    plain = succeed("play", id, *twice, keys="what else\nhello\n/quit\n")
    undone = succeed("play", id, *twice, keys="what else\nno\n/undo\nhello\n/quit\n")
    said = plain.partition("system 2 of 5: ")[2]
    assert "user:" in said
    assert undone.endswith(f"system 2 of 5: {said}")


def test_commands_that_are_none_or_cannot_be():
    assert "no command /hnt. Did you mean '/hint'?" in run("play", SMALL, keys="/hnt\n").stderr
    asked = run("play", SMALL, "--as", "user", keys="/hint\n")
    assert "the user of Wordle has no policy 'optimal' to ask" in asked.stderr
    quits = succeed("play", SMALL, "-o", "word=sleep", keys="white\n/quit\n")
    assert quits.endswith("Goodbye.\n")


def test_every_task_says_how_to_play_it():
    for row in {entry.row.task: entry for entry in entries().values()}.values():
        task = make_task(row, {})
        assert task.how_to_play or rules(task)


@pytest.mark.parametrize("keys", ["", "white\n"])
def test_the_end_of_the_input_is_a_goodbye(keys):
    assert succeed("play", SMALL, "--seed", "0", keys=keys).endswith("Goodbye.\n")


def test_interruption_is_a_goodbye(monkeypatch):
    def interrupt(self, task, state, rng):
        raise KeyboardInterrupt

    monkeypatch.setattr(HumanSpeaker, "reply", interrupt)
    assert succeed("play", SMALL).endswith("Goodbye.\n")


def test_playing_the_host():
    text = succeed("play", "Wordle-v0", "--as", "user", keys="crane\n")
    assert "system: crane" in text
    assert "Solved in 1 turn" in text


def test_watching_a_policy():
    text = succeed("play", SMALL, "--policy", "optimal", "--seed", "3")
    assert "system: " in text
    assert "Solved in" in text


def test_watching_a_checkpoint(tmp_path, monkeypatch):
    reader = "dialgym.rollouts.policies.checkpoint_reader"
    monkeypatch.setattr(reader, lambda file: lambda path, trust: FixedTokens())
    (tmp_path / "model.zip").write_bytes(b"")
    utterances = "dialgym/Wordle-20-utterance-v0"
    text = succeed("play", utterances, "--policy", str(tmp_path), "-o", "word=sleep")
    assert "Solved in 1 turn, return 0." in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["Wordle-21-v0"], "unknown environment id 'Wordle-21-v0'. Did you mean"),
        ([SMALL, "--as", "me"], "learner of Wordle must be one of 'system', 'user'; got 'me'"),
        ([SMALL, "--as", "user", "--hints"], "the user of Wordle has no policy 'optimal' to ask"),
        ([SMALL, "--policy", "optimla"], "Did you mean 'optimal'?"),
        ([SMALL, "--against", "nobody"], "unknown speaker for the user 'nobody' in Wordle"),
        ([SMALL, "-o", "word=zzzzz"], "option 'word' of Wordle: expected one of its 20 answers"),
        ([SMALL, "-s", "word"], "--set: expected KEY=VALUE, such as words=50; got 'word'"),
        ([SMALL, "-s", "simulator=nobody"], "unknown speaker for the user 'nobody' in Wordle"),
        ([SMALL, "-s", "simulator=host", "--against", "host"], "both are the other party"),
        ([SMALL, "-s", "wods=3"], "unexpected keyword argument 'wods'"),
    ],
)
def test_play_with_bad_arguments(arguments, message):
    assert message in fail("play", *arguments)


def test_a_person_is_a_speaker():
    said = iter(["slee", "sleep"])
    person = HumanSpeaker(ask=lambda prompt: next(said))
    assert isinstance(person, Speaker)
    result = dialgym.evaluate(person, SMALL, 1, seeds=(0,), env_kwargs={"turns": 1})
    assert result[SMALL].lengths.item() == 1
    assert next(said, None) is None


def test_what_a_constraint_admits():
    constraint = Wordle(words=20, guesses="answers", constraint="words").static_constraint("system")
    assert allows(constraint, "sleep")
    assert not allows(constraint, "slee")
    assert not allows(constraint, "sleeps")
    assert not allows(constraint, "zzzzz")
