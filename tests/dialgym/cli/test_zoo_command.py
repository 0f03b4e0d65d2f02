"""An agent of the zoo by its name, in each command that takes a policy or a saved model."""

from pathlib import Path

import gymnasium as gym
import pytest

pytest.importorskip("stable_baselines3")
pytest.importorskip("pyarrow")
import agents
import dialgym
from agents import SequencePPO
from dialgym.experiments import panel as panels
from dialgym.experiments.row_files import read_row
from dialgym.io.files import read_yaml
from dialgym.viewer.inputs import ViewerInputs
from tests.support.commands import fail, succeed
from tests.support.tiny_panel import NETWORK, install
from tests.support.tiny_zoo import ID, PANEL, write_rows, write_tiny_zoo

ACTS, WORDS = "zoo:slotfilling-act-me", "zoo:speller"


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """Rows, and a zoo of an agent that chooses acts and of one that spells words."""
    folder = tmp_path_factory.mktemp("made")
    before = panels._panels
    install(panel=PANEL)
    write_rows(folder / "rows")
    write_tiny_zoo(folder / "rows", folder / "zoo")
    panels._panels = before
    env = dialgym.sb3_vec_env("Wordle-20-v0", 2)
    speller = SequencePPO("GPTPolicy", env, policy_kwargs=NETWORK, device="cpu", seed=0)
    speller.save(folder / "zoo" / "speller" / "model.zip")
    return folder


@pytest.fixture(autouse=True)
def zoo(made, monkeypatch) -> None:
    install(monkeypatch, PANEL)
    monkeypatch.setenv("DIALGYM_ZOO", str(made / "zoo"))


def test_zoo_lists_the_agents_with_learner_score_and_size():
    head, _, line = succeed("zoo").strip().splitlines()
    assert head == "| agent | environment | learner | score | return | success | size |"
    assert line.startswith(f"| {ACTS} | SlotFilling-act-v0 | me (bc) | ")
    assert line.endswith("kB |")


def test_zoo_without_one_says_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setenv("DIALGYM_ZOO", str(tmp_path))
    assert "work in a checkout, or name a copy" in fail("zoo")


def test_a_damaged_index_is_found(made, tmp_path, monkeypatch):
    text = (made / "zoo" / "zoo.json").read_text("utf-8")
    (tmp_path / "zoo.json").write_text(text.replace('"seed": 0', '"seed": 1'), "utf-8")
    monkeypatch.setenv("DIALGYM_ZOO", str(tmp_path))
    assert "zoo.json" in fail("zoo")
    (tmp_path / "zoo.json").write_text('{"form": "another"}', "utf-8")
    assert "expected an index of the form 'dialgym zoo 1'" in fail("zoo")


def test_evaluate_plays_it_where_it_was_trained():
    assert ACTS in succeed("evaluate", ACTS, "-n", "4", "--seeds", "0")
    assert WORDS in succeed("evaluate", WORDS, "Wordle-20-v0", "-n", "4", "--seeds", "0")
    assert dialgym.evaluate(ACTS, ID, 4, seeds=[0]).policy == ACTS
    known = "Known: slotfilling-act-me, speller."
    for command in (["evaluate", "zoo:no"], ["evaluate", "zoo:no", ID], ["chat", "-m", "zoo:no"]):
        assert known in fail(*command)


def test_benchmark_scores_it_beside_others():
    text = succeed("benchmark", "--policies", f"random,{ACTS},mine={ACTS}", "--ids", ID,
                   "-n", "4", "--seeds", "0", "--games", "0")  # fmt: skip
    assert ACTS in text
    assert "mine" in text


def test_play_and_chat_are_held_with_it():
    keys = "hello()\nbye()\n/quit\n"
    assert "system:" in succeed("chat", "-m", ACTS, "--seed", "0", keys=keys)
    against = succeed("play", "SlotFilling-v0", "--as", "user", "--against", ACTS, keys=keys)
    assert "system:" in against
    assert "seed 3" in succeed("play", "Wordle-20-v0", "--policy", WORDS, "--seed", "3")
    assert "Goodbye." in succeed("chat", "-m", WORDS, "--seed", "0", keys="hi\n/quit\n")
    assert "unknown agent 'no'" in fail("play", ID, "--as", "user", "--against", "zoo:no")


def test_a_simulator_is_one_of_the_zoo():
    env = gym.make("dialgym/Wordle-20-utterance-v0", learner="user", simulator=WORDS)
    env.reset(seed=0)
    speaker = agents.load_speaker(ACTS)
    assert isinstance(speaker, agents.ActAgent)
    assert isinstance(agents.ChatAgent.load(WORDS), agents.ChatAgent)


def test_collect_and_train_begin_with_it():
    assert "4 dialogues stored" in succeed("collect", ID, "--policy", ACTS, "-n", "4",
                                           "--out", "data")  # fmt: skip
    succeed("train", "bc", ID, "--data", "data", "--init-from", ACTS, "--timesteps", "1",
            "--out", "run")  # fmt: skip
    assert read_yaml(Path("run/config.yml"))["init_from"] == ACTS


def test_view_shows_its_folder():
    [source] = ViewerInputs([ACTS]).sources.values()
    assert (source.kind, source.name) == ("run", "slotfilling-act-me")
    assert source.content.plays()
    assert "unknown agent 'no'" in fail("view", "zoo:no", "--port", "0")


def test_report_leaves_the_folder_of_the_zoo_as_it_is(made):
    before = sorted((made / "zoo").rglob("*"))
    succeed("report", ACTS, "-n", "4", "--games", "1")
    assert "slotfilling-act-me" in Path("report.html").read_text("utf-8")
    assert sorted((made / "zoo").rglob("*")) == before


def test_a_row_without_its_model_is_played_again_from_the_zoo(made, tmp_path):
    [file] = (made / "rows").rglob("*-seed0.json")
    copy = tmp_path / file.relative_to(made / "rows")
    copy.parent.mkdir(parents=True)
    copy.write_bytes(file.read_bytes())
    assert read_row(copy).is_replayable
    assert "played again alike" in succeed("leaderboard", "check", str(tmp_path / "tiny"),
                                           "--replay")  # fmt: skip


def test_another_file_than_the_index_says_is_not_played_for_a_row(made, tmp_path, monkeypatch):
    [file] = (made / "rows").rglob("*-seed0.json")
    copy = tmp_path / file.relative_to(made / "rows")
    copy.parent.mkdir(parents=True)
    copy.write_bytes(file.read_bytes())
    other = tmp_path / "zoo" / "slotfilling-act-me" / "model.zip"
    other.parent.mkdir(parents=True)
    other.write_bytes((made / "zoo" / "speller" / "model.zip").read_bytes())
    index = (made / "zoo" / "zoo.json").read_bytes()
    (tmp_path / "zoo" / "zoo.json").write_bytes(index)
    monkeypatch.setenv("DIALGYM_ZOO", str(tmp_path / "zoo"))
    assert not read_row(copy).is_replayable
    assert "nor in the zoo" in fail("leaderboard", "check", str(copy), "--replay")


def test_completion_knows_the_agents():
    from dialgym.cli.common import complete_runs

    assert {ACTS, WORDS} <= {*complete_runs()}
