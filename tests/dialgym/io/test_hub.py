"""Names of the hub and paths, revisions, what is fetched, and what is refused."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from dialgym.io import hub
from dialgym.io.hub import (
    Repository,
    SourceError,
    fetch,
    locate,
    model_folder,
    pinned,
    pinned_names,
)
from tests.support.pretend_hub import COMMIT


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("hf:gpt2", Repository("gpt2")),
        ("hf:openai/gpt2", Repository("openai/gpt2")),
        ("hf:openai/gpt-2.x@main", Repository("openai/gpt-2.x", "main")),
        ("hf:a/b@refs/convert/parquet", Repository("a/b", "refs/convert/parquet")),
    ],
)
def test_names_of_the_hub(name, found, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gpt2").mkdir()  # a folder of that name is not what was said
    assert locate(name, "it") == found
    assert str(found) == name


@pytest.mark.parametrize(
    "name", ["hf:", "hf:a b", "hf:a@", "hf:a@-x", "hf:a@x/../y", "hf:-a", "hf:a..b", "hf:a@b@c"]
)
def test_what_is_no_name_of_the_hub(name):
    with pytest.raises(ValueError, match=r"it: expected hf:NAME or hf:NAME@REVISION.* got 'hf:"):
        locate(name, "it")


def test_nothing_is_no_path():
    with pytest.raises(SourceError, match="it: expected a file or folder; got ''"):
        locate("", "it")


def test_paths(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b").mkdir()
    for name in ("a", "./a", str(tmp_path / "a"), f"hf:{tmp_path / 'a'}", "hf:./a"):
        assert locate(name, "it") == tmp_path / "a"
    assert locate(Path("a/b"), "it") == tmp_path / "a" / "b"


@pytest.mark.parametrize("name", ["gpt2", "openai/gpt2", "openai/gpt2@main", "data.csv"])
def test_a_path_that_is_not_there_is_no_name_of_the_hub(name, pretend_hub, tmp_path):
    pretend_hub.add(name.partition("@")[0], tmp_path)
    with pytest.raises(SourceError) as caught:
        locate(name, "it", ", or leave it out")
    assert str(caught.value) == (
        f"it: there is no file or folder {name!r}. Check the path, or leave it out. If it is on "
        f"the Hugging Face hub, say 'hf:{name}'."
    )
    assert isinstance(caught.value, FileNotFoundError)
    assert isinstance(caught.value, ValueError)
    assert not pretend_hub.asked


@pytest.mark.parametrize("name", ["./gpt2", "/no/gpt2", "~/no-gpt2", "a/b/c", "hf:./none", "a b"])
def test_what_cannot_be_of_the_hub_gets_no_such_hint(name):
    with pytest.raises(SourceError, match=r"there is no file or folder .*Check the path\.$"):
        locate(name, "it")


def test_what_is_fetched(pretend_hub, tmp_path):
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "run.py").write_text("raise SystemExit")
    pretend_hub.add("who/model", tmp_path, "v1")
    place = Repository("who/model", "v1")
    folder = fetch(place, "it", ("*.json",))
    assert fetch(place, "it", ("*.json",)) == folder
    assert pretend_hub.asked == [("who/model", "model", "v1", ("*.json",))]
    assert [file.name for file in folder.iterdir()] == ["config.json"]
    assert hub.commits() == {"hf:who/model@v1": COMMIT}
    assert pinned("hf:who/model@v1", folder) == f"hf:who/model@{COMMIT}"
    assert pinned(str(tmp_path), tmp_path) == str(tmp_path)


def test_what_is_not_there(pretend_hub, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SourceError, match=r"it: 'hf:a/b' could not be fetched .*network\. \(404"):
        fetch(Repository("a/b"), "it", ("*",))
    (tmp_path / "a").mkdir()
    with pytest.raises(SourceError, match=r"or say \./a for the folder here\. \(404"):
        fetch(Repository("a"), "it", ("*",))


@pytest.mark.parametrize("name", hub.OFFLINE)
def test_offline_nothing_is_asked(name, pretend_hub, tmp_path, monkeypatch):
    (tmp_path / "config.json").write_text("{}")
    pretend_hub.add("a/b", tmp_path)
    monkeypatch.setenv(name, "1")
    with pytest.raises(SourceError, match=r"it: 'hf:a/b' was not fetched before, and nothing is"):
        fetch(Repository("a/b"), "it", ("*.json",))
    monkeypatch.delenv(name)
    folder = fetch(Repository("a/b"), "it", ("*.json",))
    monkeypatch.setenv(name, "1")
    monkeypatch.setattr(hub, "_folders", {})
    assert fetch(Repository("a/b"), "it", ("*.json",)) == folder  # as it was fetched


def test_offline_no_socket_is_opened(monkeypatch, tmp_path):
    """The library itself, in an empty cache: every socket would be an error of another kind."""
    monkeypatch.setenv("DIALGYM_OFFLINE", "1")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("socket.socket.connect", lambda *args: pytest.fail("it asks"))
    with pytest.raises(SourceError, match="'hf:no-one/nothing' was not fetched before"):
        model_folder("hf:no-one/nothing", "it")


def test_old_weights_are_fetched_where_there_are_no_others(pretend_hub, tmp_path):
    for name in ("config.json", "pytorch_model.bin"):
        (tmp_path / name).write_text("{}")
    pretend_hub.add("a/old", tmp_path)
    folder = model_folder("hf:a/old", "it", weights=False)
    assert [file.name for file in folder.iterdir()] == ["config.json"]
    assert (model_folder("hf:a/old", "it") / "pytorch_model.bin").is_file()
    (tmp_path / "model.safetensors").write_text("")
    pretend_hub.add("a/new", tmp_path)
    assert not (model_folder("hf:a/new", "it") / "pytorch_model.bin").exists()


def test_a_model_and_a_data_set_of_one_name_have_their_own_commits(pretend_hub, tmp_path):
    repository, commits = Repository("a/b"), {"model": "1" * 40, "dataset": "2" * 40}
    for kind, commit in commits.items():
        pretend_hub.add("a/b", tmp_path, commit=commit)
        fetch(repository, "it", ["*.json"], kind)
    assert hub.commits() == {"hf:a/b": "1" * 40, "hf:datasets/a/b": "2" * 40}
    hub.check_commits({"hf:a/b": "1" * 40}, "it")
    with pytest.raises(ValueError, match=f"'hf:a/b' was at {'2' * 40} .* is at {'1' * 40} now"):
        hub.check_commits({"hf:a/b": "2" * 40}, "it")


def test_what_is_published_is_what_is_fetched_then(pretend_hub, tmp_path, monkeypatch):
    class Api:
        def create_repo(self, *args, **kwargs): ...

        def upload_folder(self, *, repo_id, folder_path, delete_patterns, **kwargs):
            assert delete_patterns == ["base/*"]
            pretend_hub.add(repo_id, Path(folder_path), commit="f" * 40)
            return SimpleNamespace(oid="f" * 40)

    monkeypatch.setattr("huggingface_hub.HfApi", Api)
    pretend_hub.add("a/b", tmp_path)
    assert fetch(Repository("a/b"), "it", ["*.json"]).name == COMMIT
    assert hub.publish(tmp_path, "hf:a/b", "it", replaced=["base/*"]) == f"hf:a/b@{'f' * 40}"
    assert fetch(Repository("a/b"), "it", ["*.json"]).name == "f" * 40


def test_names_with_their_commits():
    found = {"hf:a/b": COMMIT, "hf:a/b@v1": "1" * 40}
    value = {"x": ["hf:a/b", "hf:a/c"], "hf:a/b": ("hf:a/b@v1", 3)}
    assert pinned_names(value, found) == {
        "x": [f"hf:a/b@{COMMIT}", "hf:a/c"],
        "hf:a/b": (f"hf:a/b@{'1' * 40}", 3),
    }


def test_code_that_comes_with_a_model_never_runs(pretend_hub, tmp_path, monkeypatch):
    """And nobody is asked whether it may."""
    monkeypatch.setattr("builtins.input", lambda *text: pytest.fail("it asks"))
    mark = tmp_path / "ran"
    source = tmp_path / "model"
    source.mkdir()
    (source / "evil.py").write_text(f"open({str(mark)!r}, 'w')\nclass Evil: pass\n")
    auto_map = {"AutoConfig": "evil.Evil", "AutoModelForCausalLM": "evil.Evil"}
    auto_map |= {"AutoTokenizer": ["evil.Evil", None]}
    content = {"model_type": "evil", "auto_map": auto_map, "architectures": ["Evil"]}
    (source / "config.json").write_text(json.dumps(content))
    (source / "tokenizer_config.json").write_text(json.dumps({"auto_map": auto_map}))
    pretend_hub.add("who/evil", source)
    for place in (source, model_folder("hf:who/evil", "it")):
        for auto in ("AutoConfig", "AutoTokenizer", "AutoModelForCausalLM"):
            with pytest.raises((ValueError, OSError)):
                hub.pretrained(auto, place)
    assert not mark.exists()
