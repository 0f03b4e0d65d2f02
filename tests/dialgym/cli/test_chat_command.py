"""`dialgym chat`, with lines piped in, and a clone that learned what to answer."""

import pytest

import agents
from agents import ChatAgent
from dialgym.cli.chat import Session
from tests.agents.models.test_pretrained import save_model
from tests.support.commands import fail, run, succeed
from tests.support.toy_talk import ANSWERS, taught

ASK = "who are you?"


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    file = tmp_path_factory.mktemp("run") / "model.zip"
    taught().save(file)
    return str(file)


def test_what_was_taught_is_answered(model):
    agent = ChatAgent.load(model, deterministic=True)
    for question, answer in ANSWERS.items():
        assert agent.chat(question) == answer
        assert agent.chat(question, ["bye", "see you."]) == answer
    untaught = ChatAgent(agent.talker)
    assert untaught.chat(ASK, seed=0, temperature=50.0) != ANSWERS[ASK]


def test_a_chat_at_the_terminal(model):
    text = succeed("chat", "-m", model, "--deterministic", keys=f"{ASK}\nhow are you?\n\n")
    assert "system: a bot.\n" in text
    assert "system: fine!\n" in text
    assert text.endswith("Goodbye.\n")


def test_bytes_that_are_no_text_are_shown_as_such(model):
    keys = ASK.encode() + b" \xff\n/quit\n"
    assert succeed("chat", "-m", model, "--deterministic", keys=keys).endswith("Goodbye.\n")


def test_commands(model):
    keys = f"{ASK}\nbye\n/undo\n/help\n/rest\n/reset\n/undo\n/quit\nbye\n"
    result = run("chat", "--model", model, "--deterministic", keys=keys)
    assert result.exit_code == 0
    assert "1 exchange remembered." in result.stdout
    assert result.stdout.count("0 exchanges remembered.") == 2
    assert "/undo   Forget the last exchange." in result.stdout
    assert "error: no command /rest. Did you mean '/reset'?" in result.stderr
    assert result.stdout.count("see you.") == 1  # nothing is said after /quit
    assert result.stdout.endswith("Goodbye.\n")


def test_the_history_is_what_was_said():
    seen = []

    def reply(text, history):
        if text == "long":
            raise ValueError("say it in fewer words")
        seen.append((text, list(history)))
        return text.upper()

    session = Session(reply)
    for line in ["a", "long", "  b ", "/undo", "c", "/reset", "d"]:
        assert session.handle(line)
    assert seen == [("a", []), ("b", ["a", "A"]), ("c", ["a", "A"]), ("d", [])]
    assert not session.handle("/quit")


def test_the_terminal_obeys_no_control_characters_of_a_reply(capsys):
    Session(lambda text, history: "two\r\nlines \x1b[31m\x9b1m\x07é 你").handle("a")
    assert capsys.readouterr().out == "system: two\nlines �[31m�1m�é 你\n"


def test_the_same_seed_gives_the_same_chat(model):
    hot = ["chat", "-m", model, "--temperature", "3", "--max-tokens", "8"]
    keys = f"{ASK}\n" * 3
    first, again = (succeed(*hot, "--seed", "3", keys=keys) for _ in range(2))
    assert first == again
    other = succeed(*hot, "--seed", "4", keys=keys)
    assert other != first
    narrow = succeed(*hot, "--seed", "3", "--top-k", "1", keys=f"{ASK}\n")
    assert "a bot." in narrow


def test_interruption_is_a_goodbye(model, monkeypatch):
    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(ChatAgent, "chat", interrupt)
    assert succeed("chat", "-m", model, keys="bye\n").endswith("Goodbye.\n")


def test_a_language_model_by_folder(tmp_path):
    save_model(tmp_path)
    text = succeed("chat", "-m", str(tmp_path), "--seed", "0", "--max-tokens", "5", keys="a b\n")
    assert "system: " in text
    assert text.endswith("Goodbye.\n")


def test_errors_are_one_line(model, tmp_path):
    assert "chat: there is no file or folder " in fail("chat", "-m", str(tmp_path / "none.zip"))
    assert "chat: no model in " in fail("chat", "-m", str(tmp_path))
    assert "temperature must be above 0" in fail("chat", "-m", model, "--temperature", "0")
    (tmp_path / "bad.zip").write_text("x")
    assert "is no saved model" in fail("chat", "-m", str(tmp_path / "bad.zip"))


def test_an_agent_of_acts_plays_where_it_was_trained(tmp_path):
    """By `chat`, and by `play --against`: the person is the user, in English."""
    agents.train(
        "SlotFilling-act-v0",
        "dqn",
        total_timesteps=40,
        n_envs=1,
        hyperparameters={"buffer_size": 100},
        log_dir=tmp_path,
        progress_bar=False,
    )
    keys = "I want something in the north.\nbye\n"
    arguments = ["SlotFilling-utterance-v0", "--as", "user", "--against", str(tmp_path)]
    texts = [
        succeed("chat", "-m", str(tmp_path), "--seed", "3", keys=keys),
        succeed("play", *arguments, "--seed", "3", keys=keys),
    ]
    for text in texts:
        assert "You are the user" in text
        assert "Solved" in text or "Not solved" in text
    assert texts[0].partition("system:")[2] == texts[1].partition("system:")[2]
