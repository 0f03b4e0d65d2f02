"""The soak finds what it looks for, and finds nothing in a short run."""

import os
import subprocess
import sys
import time
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("stable_baselines3")
import dialgym
from benchmarks.soak import damage as damaging
from benchmarks.soak import inputs as playing
from benchmarks.soak.budget import Budget, Tally
from benchmarks.soak.children import Child
from benchmarks.soak.inputs import random_text
from benchmarks.soak.kills import Collections, Grid
from tests.support.waiting import HANG_GUARD

ROOT = Path(__file__).parents[2]
WORDS, TALK = "dialgym/Wordle-20-v0", "dialgym/Wordle-20-utterance-v0"


EACH_ALGORITHM = (
    "kills.Trainer(rng, folder, name, stored).kill() for stored in [kills.dialogues(folder)] "
    "for name in ALGORITHMS"
)
COUNTED = """
import sys
from pathlib import Path
import numpy as np
from agents.registry import ALGORITHMS
from benchmarks.soak import kills
rng, folder = np.random.default_rng(0), Path(sys.argv[1])
tallies = list({})
failures = [failure for tally in tallies for failure in tally.failures]
print(*failures, file=sys.stderr)
print(len(tallies), len(failures))
"""


def in_fresh_process(attack, folder):
    """The numbers of tries and failures: who trains in a fork must not have trained before it, as
    autograd's threads are not forked."""
    command = [sys.executable, "-c", COUNTED.format(attack), str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=HANG_GUARD)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def failures(tallies):
    return [failure for tally in tallies for failure in tally.failures]


@pytest.mark.parametrize("env_id", [WORDS, TALK, "dialgym/SlotFilling-act-v0"])
def test_random_and_bad_inputs(env_id):
    game = playing.Game(env_id, np.random.default_rng(0))
    for _ in range(20):
        game.step(game.actions())
    assert game.refuse() > 60


def test_a_row_that_differs_is_found():
    game = playing.Game(WORDS, np.random.default_rng(0))
    step = game.batch.step
    for place, expected in ((1, "rewards or ends"), (0, "the observation")):

        def wrong(actions, place=place):
            result = list(step(actions))
            result[place] = result[place] + 1
            return result

        game.batch.step = wrong
        with pytest.raises(AssertionError, match=expected):
            game.step(game.actions())


def test_a_bad_argument_that_is_taken_or_crashes_is_found():
    def crash(action):
        raise TypeError("no len()")

    assert playing._taken("step", lambda action: None, 1) == "step: (1,) was taken"
    assert "TypeError: no len()" in playing._taken("step", crash, 1)


def test_random_texts_are_of_many_kinds():
    space, rng = dialgym.make_vec(TALK, 1).single_action_space, np.random.default_rng(0)
    texts = [random_text(rng, space) for _ in range(200)]
    assert len(set(texts)) > 150
    assert any(space.contains(text) for text in texts)
    assert not all(space.contains(text) for text in texts)


@pytest.mark.slow
def test_killed_collectors_end_with_what_they_would_have_made(tmp_path):
    writer = Collections(np.random.default_rng(0), tmp_path, 0)
    assert not failures([writer.kill()])
    writer.whole, writer.seconds = writer.whole.slice(1), 0.0  # no shard is there when it is killed
    assert "not what an uninterrupted run makes" in failures([writer.kill()])[0]


@pytest.mark.slow
def test_each_algorithm_goes_on_exactly_after_kills(tmp_path):
    assert in_fresh_process(EACH_ALGORITHM, tmp_path).endswith(" 0")


@pytest.mark.slow
def test_killed_benchmarks_end_with_what_they_would_have_made(tmp_path):
    writer = Grid(np.random.default_rng(0), tmp_path)
    assert not failures(writer.kill() for _ in range(3))


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="the system does not list processes")
def test_orphans_and_what_hangs_are_found(tmp_path, monkeypatch):
    monkeypatch.setattr("benchmarks.soak.children.PATIENCE", 0.1)

    def leave():
        if os.fork() == 0:
            time.sleep(30)

    child = Child(leave, tmp_path / "log")
    child.wait()
    with pytest.raises(AssertionError, match="orphans: 1 processes"):
        child.leaves_nothing()
    with pytest.raises(AssertionError, match="hangs: not done after"):
        Child(lambda: time.sleep(30), tmp_path / "log").wait(0.1)
    with pytest.raises(AssertionError, match=r"status 1: ZeroDivisionError"):
        Child(lambda: 1 / 0, tmp_path / "log").wait()


def test_damaged_files_are_never_taken_for_others(tmp_path):
    tallies = islice(damaging.damage(Budget(1e6), np.random.default_rng(0), tmp_path), 30)
    assert not failures(tallies)


def test_a_damaged_file_that_is_taken_for_another_is_found(tmp_path, monkeypatch):
    monkeypatch.setattr(damaging, "DAMAGES", (damaging.FLIP,))
    (tmp_path / "numbers.txt").write_text("1 2 3")
    for read, expected in (
        (lambda folder: (folder / "numbers.txt").read_bytes(), "taken for something else"),
        (lambda folder: int("no number"), "names no file"),
    ):
        store = damaging.Store("numbers", tmp_path, "*.txt", read, lambda a, b: a == b)
        tally = damaging.try_one(store, b"others", tmp_path, np.random.default_rng(0))
        assert expected in tally.failures[0]


def test_a_tally_notes_what_a_block_raises():
    tally = Tally("kind")
    with tally.noting("something"):
        raise ValueError("two\nlines")
    assert tally.failures == ["something: ValueError: two lines"]
