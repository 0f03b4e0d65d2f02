"""Damaged models and checkpoints are refused, and the last whole checkpoint is offered."""

import json
import os
import re
import zipfile
from threading import Event, Thread

import numpy as np
import pytest

pytest.importorskip("stable_baselines3")
import agents
import dialgym
from agents.storage.archive import MANIFEST, Archive, ForeignFile, copy_archive, write_archive
from agents.training.checkpoint import BEFORE, FILE, SavedRun
from dialgym.io.locks import FolderInUse, locked
from tests.support.resuming import assert_same_model

ID = "dialgym/Wordle-20-v0"
SMALL = {"n_layer": 1, "n_head": 1, "n_embd": 8}
SHORT = {"n_steps": 8, "batch_size": 16, "n_epochs": 1, "policy_kwargs": SMALL}


def train(folder, steps=96, resume=False):
    given = {"n_envs": 2, "log_dir": folder, "progress_bar": False, "checkpoint_every": 1}
    given |= {"hyperparameters": SHORT, "resume": resume}
    return agents.train(ID, "ppo", total_timesteps=steps, **given)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The folder of a run, with two checkpoints and a model."""
    folder = tmp_path_factory.mktemp("run")
    train(folder)
    return folder


def flips(content, count, seed=0):
    """The content with one flipped bit each."""
    places = np.random.default_rng(seed).integers(0, 8 * len(content), count)
    for place in places.tolist():
        flipped = bytearray(content)
        flipped[place // 8] ^= 1 << place % 8
        yield bytes(flipped)


def members(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.mark.parametrize(("name", "what"), [("model.zip", "model"), (FILE, "checkpoint")])
def test_no_flipped_bit_is_taken_for_a_value(run, tmp_path, name, what):
    path, whole = tmp_path / name, members(run / name)
    content, refused = (run / name).read_bytes(), 0
    heads = flips(content[-1000:], 50)  # the directory at the end
    for flipped in [*flips(content, 100), *(content[:-1000] + tail for tail in heads)]:
        path.write_bytes(flipped)
        try:
            Archive(path, what)
        except ValueError:
            refused += 1
        else:
            assert members(path) == whole  # times and the like, which nobody reads
    assert refused > 100


def test_a_damaged_checkpoint_is_refused_and_the_one_before_it_goes_on_exactly(run, tmp_path):
    for name in (FILE, BEFORE):
        content = bytearray((run / name).read_bytes())
        if name == FILE:
            content[len(content) // 2] ^= 1
        (tmp_path / name).write_bytes(content)
    expected = rf"is damaged.*to go on from there, move '.*{BEFORE}' to {re.escape(FILE)}"
    with pytest.raises(ValueError, match=expected):
        train(tmp_path, resume=True)
    os.replace(tmp_path / BEFORE, tmp_path / FILE)
    train(tmp_path, resume=True)
    assert_same_model(run / "model.zip", tmp_path / "model.zip")


def test_no_whole_checkpoint_is_left(run, tmp_path):
    (tmp_path / FILE).write_bytes((run / FILE).read_bytes()[:-100])
    with pytest.raises(ValueError, match=r"damaged.*There is no other whole one: begin again"):
        SavedRun(tmp_path / FILE, {})


def test_a_run_that_is_being_written_is_left_alone(tmp_path, monkeypatch):
    monkeypatch.setattr("agents.training.session.PATIENCE", 0.1)
    held, done = Event(), Event()

    def hold():
        with locked(tmp_path):
            held.set()
            done.wait()

    thread = Thread(target=hold)
    thread.start()
    held.wait()
    with pytest.raises(FolderInUse, match="is being written by process"):
        train(tmp_path)
    done.set()
    thread.join()


# What nobody wrote


def test_a_bomb_is_refused_before_it_expands(tmp_path, monkeypatch):
    monkeypatch.setattr("agents.storage.archive.LARGEST_JSON", 2**20)
    monkeypatch.setattr("agents.storage.archive.LARGEST", 2**21)
    path = tmp_path / "model.zip"
    for ending, size in ((".json", 2**18), (".safetensors", 2**19)):
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(MANIFEST, "{}")
            for part in range(5):
                archive.writestr(f"{part}{ending}", bytes(size))
        with pytest.raises(ValueError, match=f"would be {5 * size + 2:,} bytes"):
            Archive(path, "model")


@pytest.mark.parametrize(
    ("manifest", "expected"),
    [
        (b"", r"manifest.json: expected JSON \(nothing"),
        (b"[" * 99_999, r"manifest.json: expected JSON \(more than 100 values within"),
        (b"[]", "expected manifest.json to have what, format, sections, sha256"),
        (b'{"what": "model", "format": "1", "sections": [], "sha256": {}}', "of format 1"),
        (b'{"what": "model", "format": 1, "sections": [], "sha256": []}', "expected manifest.json"),
        (b'{"what": "model", "format": 1, "sections": 3, "sha256": {}}', "expected manifest.json"),
    ],
)
def test_a_manifest_that_is_none(tmp_path, manifest, expected):
    with zipfile.ZipFile(tmp_path / "model.zip", "w") as archive:
        archive.writestr(MANIFEST, manifest)
    with pytest.raises(ValueError, match=expected):
        Archive(tmp_path / "model.zip", "model")


@pytest.mark.parametrize(
    "settings", [b'{"$": "tensor"}', b'{"$": "array", "array": "none", "dtype": "x"}', b"[" * 9999]
)
def test_values_that_nobody_packed_are_one_clear_error(tmp_path, settings):
    manifest = {"what": "model", "format": 1, "sections": ["settings"], "sha256": {}}
    with zipfile.ZipFile(tmp_path / "model.zip", "w") as archive:
        archive.writestr(MANIFEST, json.dumps(manifest))
        archive.writestr("settings.json", settings)
    with pytest.raises(
        ValueError, match=r"settings( holds what dialgym does not write|: expected)"
    ):
        Archive(tmp_path / "model.zip", "model").read("settings")


@pytest.mark.parametrize("section", ["algorithm", "settings"])
def test_a_model_without_its_parts_is_one_clear_error(run, tmp_path, section):
    archive = Archive(run / "model.zip", "model")
    whole = {name: archive.read(name) for name in archive.sections}
    for value in ({}, [], 3):
        write_archive(tmp_path / "model.zip", "model", {**whole, section: value})
        with pytest.raises(ValueError, match=f"{section} holds what dialgym does not write"):
            agents.load(tmp_path / "model.zip")
    del whole[section]
    write_archive(tmp_path / "model.zip", "model", whole)
    with pytest.raises(ValueError, match=rf"model\.zip', {section}: expected JSON \(nothing\)"):
        agents.load(tmp_path / "model.zip")


def test_a_file_of_another_compression_is_one_clear_error(tmp_path):
    """Its damage would be errors of other kinds."""
    with zipfile.ZipFile(tmp_path / "x.zip", "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr(MANIFEST, "{}")
    with pytest.raises(ValueError, match="it is compressed in another way"):
        Archive(tmp_path / "x.zip", "model")


def test_other_files_are_foreign(tmp_path):
    for content in (b"", b"text", b"PK\3\4" + bytes(100)):
        (tmp_path / "x.zip").write_bytes(content)
        with pytest.raises(ForeignFile, match="expected a zip file"):
            Archive(tmp_path / "x.zip", "model")


def test_a_model_is_no_dialogue(run):
    with pytest.raises(ValueError, match="no file of stored dialogues"):
        dialgym.load_dataset(run / "model.zip")


@pytest.mark.parametrize(
    ("section", "change"),
    [
        ("policy", lambda state: dict([*state.items()][1:])),
        ("policy", lambda state: {**state, "more": np.zeros(1)}),
        ("policy", lambda state: dict.fromkeys(state, 1)),
        ("policy", lambda state: [*state]),
        ("optimizer", lambda state: {name: {"param_groups": []} for name in state}),
        ("optimizer", lambda state: {}),
        ("optimizer", lambda state: [1]),
    ],
)
def test_the_state_of_other_networks_is_one_clear_error(run, tmp_path, section, change):
    archive, path = Archive(run / "model.zip", "model"), tmp_path / "other.zip"
    copy_archive(run / "model.zip", path, "model", {section: change(archive.read(section))})
    model = agents.load(run / "model.zip")
    for read in (agents.load, model.set_parameters):
        with pytest.raises(ValueError, match=r"other\.zip'.*(expected the state|optimizer holds)"):
            read(path)
