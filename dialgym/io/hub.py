"""The Hugging Face hub: names of repositories, fetching and publishing.

Models, tokenizers, data sets and their files are named by a path, or by ``hf:NAME``, or by
``hf:NAME@REVISION`` for a commit, branch or tag. A path that does not exist is an error, never a
name of the hub. What was fetched lies in a folder of its commit; all that reads it is given that
folder, and runs no code that comes with it. Names that settings hold go wherever settings go, and
`commits` says what they stood for.
"""

import os
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dialgym.io.checksums import check_folder
from dialgym.io.files import write_folder_atomically
from dialgym.io.finite_weights import check_finite
from dialgym.optional import require

PREFIX = "hf:"
TOKENIZER_FILES = ("*.json", "*.txt", "*.model", "*.jinja")
MODEL_FILES = (*TOKENIZER_FILES, "*.safetensors")
OLD_WEIGHTS = ("*.bin",)
"""Pickled arrays, read without running anything; fetched where there are no safetensors."""
OFFLINE = ("DIALGYM_OFFLINE", "HF_HUB_OFFLINE")
_NAME = re.compile(r"[A-Za-z0-9_][\w.-]*(/[A-Za-z0-9_][\w.-]*)?")
_REVISION = re.compile(r"[A-Za-z0-9_][\w./-]*")


class SourceError(FileNotFoundError, ValueError):
    """A path or a name of the hub without files.

    A FileNotFoundError for what opens files; a ValueError as all errors of bad arguments here.
    """

    def __str__(self) -> str:
        return str(self.args[0])


@dataclass(frozen=True)
class Repository:
    """Repository ``hf:NAME@REVISION``; without a revision, its newest state."""

    name: str
    revision: str | None = None

    def __str__(self) -> str:
        return f"{PREFIX}{self.name}" + (f"@{self.revision}" if self.revision else "")


def offline() -> bool:
    """Return True if ``DIALGYM_OFFLINE`` or ``HF_HUB_OFFLINE`` forbids requests to the hub."""
    return any(os.environ.get(name, "").lower() in ("1", "on", "true", "yes") for name in OFFLINE)


def locate(source: str | os.PathLike[str], what: str, instead: str = "") -> Path | Repository:
    """Locate a source: an existing path, or a repository of the hub.

    Args:
        source: a path; ``hf:NAME`` or ``hf:NAME@REVISION``. After ``hf:`` a path will do that
            begins with a dot, a slash or ``~``, for settings in which the prefix says what it is.
        what: what is to lie there, for messages: "the model of reward 'learned'".
        instead: what else could be given, for messages.

    Raises:
        SourceError: there is no such path; the message says how to name the hub.
        ValueError: it is no name of a repository.
    """
    text = str(source)
    name = text.removeprefix(PREFIX)
    if not text:
        raise SourceError(f"{what}: expected a file or folder{instead}; got {text!r}.")
    if name != text and not _is_path(name):
        return _repository(name, what)
    path = Path(name).expanduser()
    if path.exists():
        return path.resolve()
    raise SourceError(
        f"{what}: there is no file or folder {name!r}. Check the path{instead}.{hub_hint(name)}"
    )


def hub_hint(name: str) -> str:
    """Hint for an error about a path that might be a name of the hub; else empty."""
    if _is_path(name) or not _NAME.fullmatch(name.partition("@")[0]):
        return ""
    return f" If it is on the Hugging Face hub, say {PREFIX + name!r}."


def is_repository(target: str) -> bool:
    """Return True for ``hf:NAME``, and not for ``hf:./FOLDER``."""
    return target.startswith(PREFIX) and not _is_path(target.removeprefix(PREFIX))


def _is_path(name: str) -> bool:
    """Return True if this can be no name of the hub, which has one slash at most."""
    own = name.partition("@")[0]  # a revision may have more of them
    return own.startswith((".", "/", "~")) or "\\" in own or own.count("/") > 1


def _repository(text: str, what: str) -> Repository:
    name, at, revision = text.partition("@")
    fits = _NAME.fullmatch(name) and (not at or _REVISION.fullmatch(revision))
    if not fits or ".." in text:
        raise ValueError(
            f"{what}: expected {PREFIX}NAME or {PREFIX}NAME@REVISION, such as hf:openai/gpt2@main; "
            f"got {PREFIX + text!r}."
        )
    return Repository(name, revision or None)


_folders: dict[tuple[Repository, str, tuple[str, ...]], Path] = {}
_commits: dict[tuple[str, str], str] = {}  # by kind and name


def commits() -> dict[str, str]:
    """The commit of each repository that this process has read, by its name as it was given.

    A data set is ``hf:datasets/NAME`` here where a model of the same name was read too.
    """
    found = {}
    for (kind, name), commit in _commits.items():
        apart = kind == "dataset" and ("model", name) in _commits
        found[name.replace(PREFIX, f"{PREFIX}datasets/") if apart else name] = commit
    return dict(sorted(found.items()))


def check_commits(before: Any, where: str) -> None:
    """Compare with the `commits` at the beginning of the work that goes on.

    Raises:
        ValueError: a name stands for another commit now; the message begins with `where`.
    """
    now = commits()
    for name, commit in before.items() if isinstance(before, dict) else ():
        if now.get(name, commit) != commit:
            raise ValueError(
                f"{where}: {name!r} was at {commit} when it was begun, and is at {now[name]} "
                f"now. Begin another one, with {name.partition('@')[0]}@{commit}."
            )


def recall(others: Mapping[str, str]) -> None:
    """Add the `commits` of another process of the same work."""
    _commits.update({("", name): commit for name, commit in others.items()})


def fetch(repository: Repository, what: str, patterns: Sequence[str], kind: str = "model") -> Path:
    """Fetch the files of a repository with such names, once; return their folder.

    Offline these are the files that any library of Hugging Face's has fetched before.

    Args:
        repository: named by the caller.
        what: it is for, for messages.
        patterns: of the files, such as ``*.json``.
        kind: "model" or "dataset".

    Raises:
        SourceError: they cannot be fetched, or were not before, where nothing may be asked.
        ImportError: `huggingface_hub` is not installed.
    """
    key = (repository, kind, tuple(patterns))
    if key not in _folders:
        _folders[key] = _fetched(repository, what, patterns, kind)
        _commits[kind, str(repository)] = _folders[key].name
    return _folders[key]


def _fetched(repository: Repository, what: str, patterns: Sequence[str], kind: str) -> Path:
    hub = require("huggingface_hub", "data", what)
    try:
        folder = hub.snapshot_download(
            repository.name,
            repo_type=kind,
            revision=repository.revision,
            allow_patterns=list(patterns),
            local_files_only=offline(),
        )
    except Exception as error:  # the library and its network layer have no common error
        reason = " ".join(str(error).split())[:300]
        raise SourceError(f"{what}: {_remedy(repository)} ({reason})") from error
    return Path(folder)


def _remedy(repository: Repository) -> str:
    if offline():
        names = " or ".join(OFFLINE)
        return (
            f"{str(repository)!r} was not fetched before, and nothing is asked of the hub here, as "
            f"{names} says. Unset it, or give the path of a folder."
        )
    here = Path(repository.name).exists()
    return (
        f"{str(repository)!r} could not be fetched from the Hugging Face hub. Check the name, its "
        "revision and the network"
        + (f", or say ./{repository.name} for the folder here." if here else ".")
    )


def model_folder(source: str | os.PathLike[str], what: str, weights: bool = True) -> Path:
    """The folder of a model with its tokenizer, or without `weights` of a tokenizer alone.

    Raises:
        SourceError, ValueError, ImportError: as of `locate` and `fetch`.
    """
    located = locate(source, what)
    if isinstance(located, Path):
        return located
    if not weights:
        return fetch(located, what, TOKENIZER_FILES)
    folder = fetch(located, what, MODEL_FILES)
    if not any(folder.rglob("*.safetensors")):
        folder = fetch(located, what, (*MODEL_FILES, *OLD_WEIGHTS))
    return folder


def pinned(source: str | os.PathLike[str], folder: Path) -> str:
    """Name of a fetched `folder` that finds it again: its path, or the repository at its commit."""
    located = locate(source, "a source")
    return str(folder if isinstance(located, Path) else Repository(located.name, folder.name))


def pinned_names(value: Any, commits_by_name: Mapping[str, str]) -> Any:
    """A value with its commit added to each text in it that is a name in `commits`."""

    def with_commit(text: str) -> str:
        name = text.removeprefix(PREFIX).partition("@")[0]
        return str(Repository(name, commits_by_name[text])) if text in commits_by_name else text

    return with_texts(value, with_commit)


def with_texts(value: Any, change: Callable[[str], str]) -> Any:
    """A value with each text in its dicts, lists and tuples changed; keys stay."""
    if isinstance(value, str):
        return change(value)
    if type(value) is dict:
        return {key: with_texts(part, change) for key, part in value.items()}
    if type(value) in (list, tuple):
        return type(value)(with_texts(part, change) for part in value)
    return value


def pretrained(auto: str, folder: Path, **more: Any) -> Any:
    """Load a folder by an ``Auto`` class of `transformers`, and nothing but the folder.

    No code of the folder runs, nobody is asked whether it may, and what the folder names elsewhere
    (the base of an adapter) is not fetched.

    Args:
        auto: the name of the class.
        folder: as of `model_folder`.
        more: further arguments of its ``from_pretrained``.

    Raises:
        OSError, ValueError: a file is not there, cannot be read, or is not what its checksum says;
            a weight is NaN or infinite.
    """
    check_folder(folder)
    transformers = require("transformers", "agents", f"the model {str(folder)!r}")
    try:
        loaded = getattr(transformers, auto).from_pretrained(
            str(folder), trust_remote_code=False, local_files_only=True, **more
        )
    except (OSError, ValueError, ImportError):
        raise
    except Exception as error:  # of its weights' format, of a config's fields: no common base
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise ValueError(f"{str(folder)!r} cannot be read by {auto} ({reason}).") from error
    model = loaded[0] if isinstance(loaded, tuple) else loaded  # with what was noted of its loading
    check_finite(model, f"the model {str(folder)!r}", "Train it again, or give another one.")
    return loaded


def publish(
    folder: Path,
    target: str,
    what: str,
    kind: str = "model",
    private: bool = False,
    replaced: Sequence[str] = (),
) -> str:
    """Put the files of a folder into a repository of the hub, or into another folder.

    A repository that is not there yet is made. Who may write there is told by the token of
    ``huggingface-cli login`` or ``HF_TOKEN``.

    Args:
        folder: with the files.
        target: ``hf:NAME``, or a path: a new folder, or an empty one that is not the current one.
        what: is published, for messages.
        kind: "model" or "dataset".
        private: make a new repository private.
        replaced: patterns of files of a repository that do not stay from an earlier time.

    Returns:
        ``hf:NAME@COMMIT``, or the path.

    Raises:
        SourceError: it cannot be written there, or nothing may be asked of the hub.
        ValueError: it is no name, or the folder is in use.
        ImportError: `huggingface_hub` is not installed.
    """
    name = target.removeprefix(PREFIX)
    if not is_repository(target):
        return _put_into(folder, Path(name).expanduser(), what)
    repository = _repository(name, what)
    if repository.revision is not None:
        raise ValueError(f"{what}: expected {PREFIX}NAME to publish to; got {target!r}.")
    if offline():
        raise SourceError(f"{what}: {' or '.join(OFFLINE)} forbids to ask the hub. Unset it.")
    return _upload(folder, repository.name, kind, private, what, replaced)


def _upload(
    folder: Path, name: str, kind: str, private: bool, what: str, replaced: Sequence[str]
) -> str:
    hub = require("huggingface_hub", "data", what)
    try:
        api = hub.HfApi()
        api.create_repo(name, repo_type=kind, private=private, exist_ok=True)
        commit = api.upload_folder(
            repo_id=name,
            repo_type=kind,
            folder_path=str(folder),
            commit_message=f"Publish {what}",
            delete_patterns=list(replaced),
        )
    except Exception as error:  # the library and its network layer have no common error
        reason = " ".join(str(error).split())[:300]
        raise SourceError(
            f"{what}: {PREFIX + name!r} could not be written on the Hugging Face hub. Check the "
            f"name, the token (HF_TOKEN, or huggingface-cli login) and the network ({reason})."
        ) from error
    for key in [key for key in _folders if key[0].name == name]:
        del _folders[key]  # its newest state is another one now
    return str(Repository(name, commit.oid))


def _put_into(folder: Path, target: Path, what: str) -> str:
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise ValueError(
            f"{what}: {str(target)!r} holds something already. Give a new folder, or "
            f"{PREFIX}NAME for the Hugging Face hub."
        )
    write_folder_atomically(target, lambda new: shutil.copytree(folder, new, dirs_exist_ok=True))
    return str(target)
