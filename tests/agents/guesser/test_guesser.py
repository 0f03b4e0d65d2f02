"""Guessers: they learn what tells images apart, load without pickles, and say what is wrong."""

import json
import pickle
from shutil import copytree

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from agents import train_guesser
from agents.guesser.examples import played, said_by_people, task_of
from agents.guesser.training import GuesserConfig, GuesserTraining, held_out_images
from dialgym.io.checksums import DamagedFile
from dialgym.tasks.visual_dialogue.guessers import Held, make_guesser
from dialgym.tasks.visual_dialogue.learned import LearnedGuesser, encode, predict, read_guesser
from tests.support.commands import fail, succeed
from tests.support.toy_visdial import write_visdial

ENV = "dialgym/VisualDialogue-v0"
TINY = {"width": 32, "buckets": 1024, "learning_rate": 0.01, "held_out": 0.2}
COLOURS, SIZES = ("red", "green", "blue", "black", "white"), ("small", "large", "huge", "tiny")


def toy_talk() -> tuple[list[Held], np.ndarray]:
    """20 images, one for each colour and size; the caption tells nothing, an answer each of them.

    Features are one-hot codes, so that images never seen are told by what they share with others.
    """
    talk, features = [], []
    for image in range(20):
        colour, size = image % 5, image // 5
        features.append(np.concatenate([np.eye(5)[colour], np.eye(4)[size]]) / np.sqrt(2))
        rounds = (("what colour is it?", COLOURS[colour]), ("how big is it?", SIZES[size]))
        talk += [Held("a thing", rounds, image), Held("a thing", rounds[::-1], image)]
    return talk, np.array(features, np.float32)


@pytest.mark.parametrize("loss", ["contrastive", "regression"])
def test_images_that_were_never_seen_are_told_by_what_they_share(loss):
    talk, features = toy_talk()
    run = GuesserTraining(talk, features, GuesserConfig(**TINY, loss=loss), 0, torch.device("cpu"))
    for _ in range(40):
        run.epoch()
    _, metrics = run.best()
    assert (metrics["dialogues"], metrics["held_out"]) == (32, 8)
    start, one, both = metrics["percentiles"]
    assert 0.2 < start < 0.8  # the caption tells nothing
    assert one > 0.7
    assert both > 0.9
    if loss == "regression":  # the other one is about ranks alone
        assert metrics["distance"] < 1.0  # half of that of features which have nothing in common
    assert metrics["rank"] == max(epoch["rank"] for epoch in run.history)


def test_no_image_is_on_both_sides():
    talk, features = toy_talk()
    run = GuesserTraining(talk, features, GuesserConfig(**TINY), 3, torch.device("cpu"))
    assert not {h.image for h in run.learned} & {h.image for h in run.tested}
    assert held_out_images(talk, 0.2, 3) == {h.image for h in run.tested}
    with pytest.raises(ValueError, match="dialogues about two images or more; got 1 about 1"):
        held_out_images(talk[:1], 0.2, 0)


def test_the_network_s_sums_are_those_of_a_slow_one():
    talk, features = toy_talk()
    run = GuesserTraining(talk, features, GuesserConfig(**TINY), 0, torch.device("cpu"))
    weights = {n: w.detach().double() for n, w in run.weights.items()}
    encoded = [encode(held._replace(history=held.history[:n]), 1024) for n, held in
               zip((0, 1, 2), talk)]  # fmt: skip
    found = predict(weights, encoded)
    for told, texts in zip(found, encoded):
        total = torch.zeros(32, dtype=torch.double)
        for ids in texts:
            bag = weights["terms"][ids].sum(0)
            total += (weights["text.weight"] @ bag + weights["text.bias"]).relu()
        hidden = (weights["hidden.weight"] @ total + weights["hidden.bias"]).relu()
        out = weights["out.weight"] @ hidden + weights["out.bias"]
        assert torch.allclose(told, out / out.norm())


def test_the_order_of_rounds_does_not_matter_but_the_answer_does():
    talk, _ = toy_talk()
    forth, back = (encode(held, 2**14) for held in talk[:2])
    assert sorted(forth) == sorted(back)
    yes, no = (encode(Held("", (("is it red?", said),), 0), 2**14)[1] for said in ("yes", "no"))
    assert not set(yes) & set(no)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A guesser of eight images of VisDial, with its folder and data."""
    folder = tmp_path_factory.mktemp("guesser")
    data = write_visdial(folder)
    pool = {"name": "visdial", "data": str(data), "hashed": 64}
    settings = {**TINY, "epochs": 3}
    found = train_guesser(ENV, folder / "model", env_kwargs={"pool": pool}, **settings)
    return found, pool, folder


def test_what_is_written_is_read(trained):
    found, pool, _ = trained
    assert sorted(path.name for path in found.folder.iterdir()) == [
        "guesser.json", "guesser.json.sha256",
        "guesser.safetensors", "guesser.safetensors.sha256",
    ]  # fmt: skip
    written = json.loads((found.folder / "guesser.json").read_text())
    assert written["metrics"] == found.metrics
    assert (written["epochs"], written["policy"], written["seed"]) == (3, None, 0)
    task = task_of(ENV, {"pool": pool})
    guesser = make_guesser(f"learned:{found.folder}", task.pool)
    talk = said_by_people(task)
    assert np.allclose(np.linalg.norm(guesser.imagine(talk), axis=1), 1)
    ranks = guesser.percentiles(talk)
    told, images = guesser.imagine(talk).astype(np.float64), task.pool.features
    for held, rank in zip(talk, ranks):
        distances = np.square(told[held.image] - images).sum(1)
        assert rank == 1 - (distances < distances[held.image]).sum() / 8
    assert np.array_equal(pickle.loads(pickle.dumps(guesser)).percentiles(talk), ranks)
    assert guesser.percentiles([]).shape == (0,)


def test_the_same_seed_gives_the_same_weights(trained, tmp_path):
    found, pool, _ = trained
    again = train_guesser(
        ENV, tmp_path / "again", env_kwargs={"pool": pool}, **{**TINY, "epochs": 3}
    )
    name = "guesser.safetensors"
    assert (again.folder / name).read_bytes() == (found.folder / name).read_bytes()


def test_dialogues_are_played_with_each_image_as_often():
    task = task_of(ENV, {"pool": {"name": "scenes", "scenes": 4}, "rounds": 3})
    talk = played(task, "random", 8, 0)
    assert sorted(held.image for held in talk) == [0, 0, 1, 1, 2, 2, 3, 3]
    assert {len(held.history) for held in talk} == {3}
    assert talk == played(task, "random", 8, 0) != played(task, "random", 8, 1)


def test_the_command_line(trained, tmp_path):
    _, pool, folder = trained
    out = tmp_path / "model"
    told = succeed(
        "train", "guesser", ENV, "--out", str(out), "-p", "epochs=1", "-p", "width=8", "-p",
        "buckets=64", "-s", f"pool=visdial:{pool['data']}",
    )  # fmt: skip
    assert "1 dialogues about held-out images, after epoch 1" in told
    assert (out / "guesser.json").is_file()
    assert "has no dialogues of people to learn from. Name a policy" in fail(
        "train", "guesser", ENV, "--out", str(tmp_path / "other")
    )
    assert "expected an id of visual dialogue" in fail(
        "train", "guesser", "dialgym/Wordle-v0", "--out", str(tmp_path / "other")
    )
    (folder / "notes").mkdir()
    (folder / "notes" / "a.txt").write_text("mine")
    assert "exists and is none" in fail("train", "guesser", ENV, "--out", str(folder / "notes"))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"width": 0}, "width of a guesser must be a whole number from 1"),
        ({"held_out": 1}, "held_out of a guesser must be between 0 and 1"),
        ({"learning_rate": -1}, "learning_rate of a guesser must be 0 or more"),
        ({"loss": "hinge"}, "loss of a guesser must be one of 'contrastive', 'regression'"),
        ({"depth": 3}, "unknown hyperparameter 'depth' in a guesser"),
    ],
)
def test_hyperparameters_that_cannot_be(settings, message):
    with pytest.raises(ValueError, match=message):
        GuesserConfig.of(settings)


def test_what_is_no_guesser_is_told(trained, tmp_path):
    found, pool, _ = trained
    images = task_of(ENV, {"pool": pool}).pool
    with pytest.raises(ValueError, match=r"expected a folder with guesser\.json"):
        LearnedGuesser(images, str(tmp_path))
    other = task_of(ENV, {"pool": {**pool, "hashed": 32}}).pool
    with pytest.raises(ValueError, match="it tells 64 features, the images have 32"):
        LearnedGuesser(other, str(found.folder))
    spoiled = read_guesser(found.folder)[1]
    spoiled["out.bias"][0] = float("nan")
    (tmp_path / "guesser.json").write_bytes((found.folder / "guesser.json").read_bytes())
    save_file(spoiled, tmp_path / "guesser.safetensors")
    with pytest.raises(ValueError, match=r"out\.bias has weights that are NaN or infinite"):
        LearnedGuesser(images, str(tmp_path))
    for name in ("guesser.json", "guesser.safetensors"):
        (tmp_path / name).write_bytes((found.folder / name).read_bytes()[:100])
    with pytest.raises(ValueError, match="damaged"):
        LearnedGuesser(images, str(tmp_path))


def test_a_flipped_bit_of_a_guesser_is_found(trained, tmp_path):
    found, pool, _ = trained
    images = task_of(ENV, {"pool": pool}).pool
    folder = copytree(found.folder, tmp_path / "guesser")
    content = bytearray((folder / "guesser.safetensors").read_bytes())
    content[-3] ^= 1  # in a weight, where nothing else would show
    (folder / "guesser.safetensors").write_bytes(content)
    with pytest.raises(DamagedFile, match=r"guesser\.safetensors' is damaged"):
        LearnedGuesser(images, str(folder))
