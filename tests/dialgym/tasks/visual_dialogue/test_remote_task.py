"""The task with images of VisDial, and with a server: whole dialogues, and one that is killed."""

import signal
import subprocess
import sys

import gymnasium as gym
import numpy as np
import pytest

import dialgym
from dialgym.tasks.visual_dialogue import VisualDialogue
from dialgym.tasks.visual_dialogue.guessers import make_guesser
from dialgym.tasks.visual_dialogue.serving import Bots
from tests.support.commands import fail
from tests.support.toy_visdial import answers_of, write_visdial
from tests.support.visual_server import visual_server

ID = "dialgym/VisualDialogue-utterance-v0"
SCENES = {"name": "scenes", "scenes": 20}


@pytest.fixture
def visdial(tmp_path):
    return {"pool": f"visdial:{write_visdial(tmp_path)}", "guesser": "words", "mode": "10_stop"}


def test_a_dialogue_about_an_image_of_visdial(visdial):
    env = gym.make(ID, **visdial, rounds=4)
    caption, _ = env.reset(seed=0, options={"image": 3})
    assert "a train in picture 3" in caption
    total = 0.0
    questions = [question for question, _ in env.unwrapped.task.pool.dialogues[3].rounds]
    for question, answer in zip(questions, answers_of(3)):
        heard, reward, terminated, _, info = env.step(question)
        assert answer in heard
        total += reward
    assert terminated
    assert info["is_success"]
    assert total == pytest.approx(3.5 / 8)  # from the middle of the pool to its top


@pytest.mark.parametrize("policy", ["people", "retrieval"])
def test_scripted_questioners_of_visdial(visdial, policy):
    found = dialgym.evaluate(policy, [ID], 16, [0], env_kwargs={**visdial, "rounds": 4})
    if policy == "people":  # all is known once the image's own questions are asked
        assert found.mean_return == pytest.approx(3.5 / 8)
    assert 0 <= found.mean_return <= 3.5 / 8 + 1e-9


def test_who_does_not_fit_the_images_is_told(visdial):
    with pytest.raises(ValueError, match="guesser 'exact': expected generated scenes"):
        VisualDialogue(pool=visdial["pool"])
    with pytest.raises(ValueError, match="answerer 'retrieval': expected the images of VisDial"):
        VisualDialogue(answerer="retrieval", pool=SCENES)


def needs_server():
    pytest.importorskip("fastapi", reason="the extra 'web' is not installed")
    pytest.importorskip("uvicorn", reason="the extra 'web' is not installed")


def test_environments_that_share_a_server_are_ranked_as_by_the_guesser_itself():
    needs_server()
    own = VisualDialogue(pool=SCENES)
    with visual_server(Bots(own, own.answerer)) as url:
        remote = {"pool": SCENES, "guesser": f"remote:{url}", "answerer": f"remote:{url}"}
        envs = gym.make_vec(ID, 4, **remote, mode="10_stop", rounds=3, autoreset_mode="SameStep")
        envs.reset(seed=0)
        rng = np.random.default_rng(0)
        for _ in range(7):  # beyond the end of the first dialogues
            envs.step(tuple(rng.choice(own.pool.questions, 4).tolist()))
        states = envs.unwrapped.dialogues.states(np.arange(4))
        exact = make_guesser("exact", own.pool)
        for state in states:
            held = own.held(state)
            ranks = [
                exact.percentiles([held._replace(history=held.history[:n])])[0]
                for n in range(len(held.history) + 1)
            ]
            assert np.allclose(state.percentiles, ranks)
            assert len(state.percentiles) == 2  # one question into the third dialogue


class Served:
    """`dialgym serve visual` in a process of its own."""

    def __init__(self, port: int = 0) -> None:
        command = [sys.executable, "-m", "dialgym", "serve", "visual", "--port", str(port)]
        settings = ["-s", "pool={name: scenes, scenes: 20}", "--questioner", "human-like"]
        self.process = subprocess.Popen([*command, *settings], stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        assert "serving 20 images at http://127.0.0.1:" in line
        self.url = line[line.index("http://") :].partition(";")[0]

    def end(self, how: int = signal.SIGKILL) -> int:
        self.process.send_signal(how)
        self.process.stdout.close()
        return self.process.wait(20)


@pytest.mark.slow
def test_a_server_that_is_killed_loses_no_dialogue():
    """It dies between two questions, while four dialogues are under way; another one takes over."""
    needs_server()
    first = Served()
    away = {"pool": SCENES, "guesser": f"remote:{first.url}", "answerer": f"remote:{first.url}"}
    task = VisualDialogue(**away, mode="10_stop", rounds=3)
    task.guesser.remote.client.retries = 60
    rng = np.random.default_rng(0)
    states = [task.initial(rng, {"image": image}) for image in range(4)]

    def ask(state, question):
        task.speak(state, question, rng)
        task.speak(state, task.answerer.reply(task, state, rng), rng)

    for state in states:
        ask(state, "how many balls are there")
    first.end()
    second = Served(int(first.url.rpartition(":")[2]))
    for state in states:
        ask(state, "is it night")
    assert second.end(signal.SIGINT) in (0, 130, -signal.SIGINT)
    exact = make_guesser("exact", VisualDialogue(pool=SCENES).pool)
    ranks = exact.percentiles([task.held(state) for state in states])
    assert np.allclose([state.percentiles[-1] for state in states], ranks)
    # and when it stays away, each dialogue is as it was, with its question open
    task.guesser.remote.client.retries = 0
    open_ones = [state.copy() for state in states]
    for state in open_ones:
        task.speak(state, "is there a cup", rng)
        with pytest.raises(ConnectionError, match="dialgym serve visual"):
            task.answerer.reply(task, state, rng)
        assert len(state.history) == 2


def test_what_the_command_line_says_of_bad_arguments():
    needs_server()
    assert "expected an id of visual dialogue" in fail("serve", "visual", "dialgym/Wordle-v0")
    assert "unknown speaker for the system 'nobody'" in fail(
        "serve", "visual", "--questioner", "nobody"
    )
