"""Files that would run code when they are read run none, wherever they are given."""

import base64
import copy
import json
import pickle
import sys
import zipfile

import pytest

pytest.importorskip("stable_baselines3")
import agents
import dialgym
from agents.experiments.pydial_panel import read_variants
from agents.storage.archive import Archive, write_archive
from agents.training.checkpoint import FILE
from dialgym.io.hub import pretrained
from dialgym.rewards import Reply, make_reward
from dialgym.views.token_transcripts import TokenRows

ID = "dialgym/Wordle-20-v0"
SMALL = {"n_layer": 1, "n_head": 1, "n_embd": 8}
SHORT = {"n_steps": 8, "batch_size": 16, "n_epochs": 1, "policy_kwargs": SMALL}
ARGUMENTS = {"total_timesteps": 32, "n_envs": 2, "hyperparameters": SHORT, "progress_bar": False}


class Bomb:
    """Its pickle writes a file when it is read."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return open, (self.path, "w")


@pytest.fixture
def mark(tmp_path):
    return tmp_path / "code-was-run"


def pickled_model(path, mark):
    """As Stable-Baselines3 writes it."""
    harm = base64.b64encode(pickle.dumps(Bomb(mark))).decode()
    data = {"policy_class": {":type:": "x", ":serialized:": harm}, "clip_range": 0.2}
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("data", json.dumps(data))
        archive.writestr("policy.pth", pickle.dumps(Bomb(mark)))


def model(**kwargs):
    env = dialgym.sb3_vec_env(ID, 2, seed=0)
    return agents.SequencePPO("GPTPolicy", env, **{**SHORT, **kwargs})


ENTRIES = {
    "load": lambda path, folder: agents.load(path),
    "own class": lambda path, folder: agents.SequencePPO.load(path),
    "chat": lambda path, folder: agents.ChatAgent.load(path),
    "collect": lambda path, folder: dialgym.collect(ID, path, 2, path=folder / "games"),
    "evaluate": lambda path, folder: dialgym.evaluate(path, ID, episodes=2),
    "init_from": lambda path, folder: agents.train(
        ID, "ppo", init_from=path, log_dir=folder / "run", **ARGUMENTS
    ),
}


@pytest.mark.parametrize("entry", ENTRIES.values(), ids=ENTRIES)
def test_a_pickled_model_runs_nothing_and_is_one_clear_error(entry, mark, tmp_path):
    pickled_model(tmp_path / "model.zip", mark)
    with pytest.raises(ValueError, match=r"model.zip' is a pickle .* trust=True .* agents.save"):
        entry(tmp_path / "model.zip", tmp_path)
    assert not mark.exists()


def test_a_pickled_reference_runs_nothing(mark, tmp_path):
    pickled_model(tmp_path / "model.zip", mark)
    with pytest.raises(ValueError, match="is a pickle"):
        model(kl={"coef": 0.1, "reference": str(tmp_path / "model.zip")})
    assert not mark.exists()


def with_changes(path, change):
    """A safe file, changed by `change` of its sections' JSON, with right checksums."""
    model().save(path)
    archive = Archive(path, "model")
    sections = {name: archive.read(name) for name in archive.sections}
    change(sections)
    write_archive(path, "model", sections)


def evil_module(tmp_path, mark, monkeypatch):
    """A module of the current folder that writes a file when it is imported."""
    (tmp_path / "evil.py").write_text(
        f"open({str(mark)!r}, 'w')\nclass Thing:\n    policy_aliases = {{}}\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))


CHANGES = {
    "algorithm": lambda s: s["algorithm"].update({"name": None, "class": "evil:Thing"}),
    "policy": lambda s: s["settings"]["attributes"].update(policy_class="evil:Thing"),
    "head": lambda s: s["settings"]["attributes"]["policy_kwargs"].update(value_head="evil:Thing"),
    "q head": lambda s: s["settings"]["attributes"]["policy_kwargs"].update(q_head="evil:Thing"),
    "dotted head": lambda s: s["settings"]["attributes"].update(
        reference_made_by=("x", {"value_head": "evil.Thing"})
    ),
    "critic": lambda s: s["settings"]["attributes"]["policy_kwargs"].update(
        share_features_extractor={"class": "evil:Thing"}
    ),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_names_in_a_file_are_looked_up_and_never_imported(change, mark, tmp_path, monkeypatch):
    evil_module(tmp_path, mark, monkeypatch)
    with_changes(tmp_path / "model.zip", change)
    with pytest.raises(ValueError, match=r"evil:Thing, which is not (registered|known here)"):
        agents.load(tmp_path / "model.zip")
    assert not mark.exists()
    assert "evil" not in sys.modules


@pytest.mark.parametrize("name", ["os:system", "subprocess:Popen", "agents.training.run:train"])
def test_classes_of_the_library_at_large_are_no_part_of_a_model(name, tmp_path):
    path = tmp_path / "model.zip"
    model().save(path)
    with zipfile.ZipFile(path) as archive:
        members = {one: archive.read(one) for one in archive.namelist()}
    for kind in ("class", "function"):
        settings = json.loads(members["settings.json"])
        settings["attributes"]["start_time"] = {"$": kind, "name": name}
        changed = {**members, "settings.json": json.dumps(settings).encode()}
        changed["manifest.json"] = without_sums(members["manifest.json"])
        with zipfile.ZipFile(path, "w") as archive:
            for one, content in changed.items():
                archive.writestr(one, content)
        with pytest.raises(ValueError, match=f"holds {name}, which is not known here"):
            agents.load(path)


def without_sums(manifest):
    return json.dumps({**json.loads(manifest), "sha256": {}}).encode()


def of_states(change):
    """A change of the dialogues in a checkpoint."""
    return lambda sections: change(sections["process-0"]["envs"][0]["dialogues"])


def in_place_of_states(value):
    return lambda sections: sections["process-0"]["envs"][0].update(dialogues=value)


# Replaces a method of a class of dialgym where it is unpickled.
PATCH = b"\x80\x04cdialgym.views.token_transcripts\nTokenRows\nN}X\x05\x00\x00\x00clearK\x05s\x86b."


class Thing:
    """A class of another module that a file may try to name."""

    def __setstate__(self, state):
        raise AssertionError("code was run")


agents.storable(Thing)
RESUMED = {
    "a pickle that sets attributes": in_place_of_states(pickle.dumps({"num_envs": 7})),
    "a pickle that patches a class": in_place_of_states(PATCH),
    "an object": of_states(lambda rows: rows[0].update(state=Thing())),
    "a class": of_states(lambda rows: rows[0].update(rng=Thing)),
    "another attribute": of_states(lambda rows: rows[0]["state"].update(copy="x")),
    "a missing field": of_states(lambda rows: rows[0]["state"].pop("secret")),
    "another type": of_states(lambda rows: rows[0]["state"].update(secret="0")),
    "too few dialogues": of_states(lambda rows: rows.pop()),
    "attributes of the model": lambda sections: sections["process-0"]["model"].update(policy=1),
    "attributes of a callback": lambda sections: [
        callback.update(_on_step=1) for callback in sections["run"]["callbacks"].values()
    ],
    "no generators": lambda sections: sections["process-0"].pop("generators"),
}  # fmt: skip


REFUSED = r"state of Wordle cannot be read|a checkpoint has no|holds what dialgym does not write"


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    """The sections of a run's checkpoint."""
    folder = tmp_path_factory.mktemp("run")
    arguments = {**ARGUMENTS, "total_timesteps": 64, "checkpoint_every": 1}
    agents.train(ID, "ppo", log_dir=folder, **arguments)
    archive = Archive(folder / FILE, "checkpoint")
    return {name: archive.read(name) for name in archive.sections}


@pytest.mark.parametrize("change", RESUMED.values(), ids=RESUMED)
def test_a_hostile_checkpoint_changes_nothing(change, checkpoint, tmp_path):
    before = TokenRows.clear
    sections = copy.deepcopy(checkpoint)
    change(sections)
    write_archive(tmp_path / FILE, "checkpoint", sections)
    with pytest.raises(ValueError, match=REFUSED):
        agents.train(
            ID, "ppo", log_dir=tmp_path, resume=True, checkpoint_every=1,
            **{**ARGUMENTS, "total_timesteps": 64},
        )  # fmt: skip
    assert TokenRows.clear is before


def test_a_pickle_in_place_of_a_checkpoint_runs_nothing(mark, tmp_path):
    (tmp_path / FILE).write_bytes(pickle.dumps(Bomb(mark)))
    with pytest.raises(ValueError, match=r"is no saved checkpoint: expected a zip file"):
        agents.train(ID, "ppo", log_dir=tmp_path, resume=True, **ARGUMENTS)
    assert not mark.exists()


NAMES = {
    "metrics": "metrics: {'evil:Thing': {}}",
    "metrics in a list": "metrics: ['evil:Thing']",
    "policy": "policy: evil.Thing",
    "optimizer": "policy_kwargs: {optimizer_class: evil.Thing}",
    "head": "policy_kwargs: {value_head: evil.Thing}",
    "q head": "policy_kwargs: {q_head: {class: evil.Thing}}",
    "head with settings": "policy_kwargs: {value_head: {class: 'evil:Thing'}}",
    "critic": "policy_kwargs: {share_features_extractor: 'evil:Thing'}",
    "no class": "policy_kwargs: {optimizer_class: torch.hub.load}",
}


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_a_file_of_hyperparameters_imports_nothing_unless_trusted(
    name, mark, tmp_path, monkeypatch
):
    evil_module(tmp_path, mark, monkeypatch)
    own = name if name.startswith("policy:") else f"policy: agents.GPTPolicy, {name}"
    (tmp_path / "mine.yml").write_text(f"default: {{{own}}}")
    arguments = {
        **ARGUMENTS,
        "hyperparameters_file": tmp_path / "mine.yml",
        "log_dir": tmp_path / "run",
    }
    with pytest.raises(ValueError, match=r"mine.yml: it names '.*', which could run code .*trust"):
        agents.train(ID, "ppo", **arguments)
    assert not mark.exists()
    assert "evil" not in sys.modules


def test_settings_of_a_stream_in_a_file_import_nothing(mark, tmp_path, monkeypatch):
    evil_module(tmp_path, mark, monkeypatch)
    stream = "stream: {policy_kwargs: {words: 'evil:Thing'}}"
    fields, rows = tmp_path / "run.yml", tmp_path / "mine.yml"
    fields.write_text(f"hyperparameters: {{{stream}}}", "utf-8")
    rows.write_text(f"default: {{policy: agents.GPTPolicy, n_timesteps: 1, {stream}}}", "utf-8")
    arguments = {"data": "play:random-mixture", "log_dir": tmp_path / "run"}
    with pytest.raises(ValueError, match="names 'evil:Thing', which could run code"):
        agents.TrainConfig.from_yaml(fields, env_id=ID, algorithm="bc", **arguments)
    with pytest.raises(ValueError, match="names 'evil:Thing', which could run code"):
        agents.train(ID, "bc", hyperparameters_file=rows, **arguments)
    assert not mark.exists()


def test_what_a_caller_names_a_file_may_name(mark, tmp_path, monkeypatch):
    evil_module(tmp_path, mark, monkeypatch)
    (tmp_path / "mine.yml").write_text("default: {policy: agents.GPTPolicy}")
    overrides = {**SHORT, "metrics": ["evil:Thing"]}
    with pytest.raises(ValueError, match="expected 'evil:Thing' to be callable"):
        agents.train(
            ID, "ppo", hyperparameters_file=tmp_path / "mine.yml", log_dir=tmp_path / "run",
            **{**ARGUMENTS, "hyperparameters": overrides},
        )  # fmt: skip
    assert mark.exists()
    del sys.modules["evil"]


def test_variants_of_a_grid_import_nothing(mark, tmp_path, monkeypatch):
    evil_module(tmp_path, mark, monkeypatch)
    rows = ["algorithm: 'evil:Thing'", "algorithm: dqn, policy: evil.Thing"]
    for row in rows:
        (tmp_path / "variants.yml").write_text(f"mine: {{{row}}}")
        with pytest.raises(ValueError, match=r"variants.yml: it names 'evil.Thing'"):
            read_variants(tmp_path / "variants.yml")
    assert not mark.exists()


def test_pickled_weights_of_a_model_run_nothing(mark, tmp_path):
    (tmp_path / "config.json").write_text('{"model_type": "gpt2", "n_layer": 1, "n_embd": 8}')
    (tmp_path / "pytorch_model.bin").write_bytes(pickle.dumps(Bomb(mark)))
    for auto in ("AutoModelForCausalLM", "AutoModelForSequenceClassification"):
        with pytest.raises(Exception, match=r"."):
            pretrained(auto, tmp_path)
    with pytest.raises(ValueError, match="could not load the model"):
        make_reward("learned", {"model": str(tmp_path)}).score([Reply("a")])
    assert not mark.exists()


def test_a_pickled_checkpoint_of_a_reward_model_runs_nothing(mark, tmp_path):
    (tmp_path / ".m.checkpoint.pt").write_bytes(pickle.dumps(Bomb(mark)))
    rows = [{"context": str(k), "reply": "a", "score": k} for k in range(20)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(ValueError, match="is no checkpoint"):
        agents.train_reward_model(tmp_path / "rows.jsonl", tmp_path / "m", resume=True)
    assert not mark.exists()
