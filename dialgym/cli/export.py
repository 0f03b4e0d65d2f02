"""``dialgym export``: an environment as a folder that another library takes."""

import json
import math
import re
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer

from dialgym.cli.common import EnvId, Set, console, settings
from dialgym.cli.templates import check_absent, templates_in, write_templates
from dialgym.errors import one_of
from dialgym.registry import Environment
from dialgym.tasks.lookup import find_foreign
from dialgym.versions import VERSION


def openenv_values(env_id: Environment, given: Mapping[str, Any]) -> dict[str, str]:
    """Words of OpenEnv's templates for an environment and its settings.

    Raises:
        ValueError: there is no such id or setting, or the bounds of its rewards are unknown.
    """
    from dialgym.bridges.listed import ListedDialogues
    from dialgym.views.chat import Chat

    chat = Chat(env_id, **given)
    low, high = chat.env.options.returns(chat.task)
    if not math.isfinite(high - low):
        raise ValueError(
            f"export openenv: expected bounds of the rewards of {env_id!r}, which openenv.yaml "
            "declares; they are unknown."
        )
    listed = ListedDialogues(chat.env_id, chat.task)
    counts = {name: listed.num_tasks(name) for name in listed.list_splits()}
    return {
        **_call(env_id, given),
        "NAME": chat.env_id.rpartition("/")[2],
        "REWARDS": json.dumps([min(low, 0.0), max(high, 0.0)]),
        "COUNTS": json.dumps(counts),
    }


def verifiers_values(env_id: Environment, given: Mapping[str, Any]) -> dict[str, str]:
    """Words of verifiers' templates for an environment and its settings.

    Raises:
        ValueError: there is no such id or setting.
    """
    from dialgym.views.chat import Chat

    name = Chat(env_id, **given).env_id.rpartition("/")[2].rpartition(":")[2]
    module = "dialgym_" + re.sub(r"\W+", "_", name.replace("-utterance-v", "-v")).lower()
    parts = _parts(module, _own_module(env_id))
    names = {"MODULE": module, "NAME": module.replace("_", "-"), "PARTS": parts}
    return {**_call(env_id, given), **names}


def _parts(module: str, own: str) -> str:
    """Lines for setuptools: the parts of the package, with the module of a task of your own."""
    spec = find_spec(own) if own else None
    if spec is None or not spec.submodule_search_locations:
        return f"py-modules = {json.dumps([module, own] if own else [module])}"
    found = f"[tool.setuptools.packages.find]\ninclude = {json.dumps([own, f'{own}.*'])}"
    return f"py-modules = {json.dumps([module])}\n\n{found}"


def _own_module(env_id: Environment) -> str:
    """Top of the module of a task of your own; empty for an id of dialgym's or of others."""
    path, colon, _ = str(env_id).partition(":")
    own = path.partition(".")[0]
    return own if colon and own != "dialgym" and not find_foreign(str(env_id)) else ""


def _call(env_id: Environment, given: Mapping[str, Any]) -> dict[str, str]:
    """Words that call a door, in Python."""
    arguments = "".join(f", {name}={value!r}" for name, value in given.items())
    return {"ID": str(env_id), "ARGUMENTS": arguments, "VERSION": VERSION}


FORMS: Mapping[str, Callable[[Environment, Mapping[str, Any]], dict[str, str]]] = {
    "openenv": openenv_values,
    "verifiers": verifiers_values,
}
"""By form, the words that its templates ``export_FORM`` are filled with."""


def export(
    form: Annotated[
        str, typer.Argument(metavar="FORM", help=", ".join(FORMS), autocompletion=lambda: [*FORMS])
    ],
    id: EnvId,
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="A new one.")],
    set_: Set = None,
) -> None:
    """Write an environment as a folder for another library.

    openenv: a server with openenv.yaml and Dockerfile, as `dialgym serve openenv` starts it.
    verifiers: a package that `vf-eval` and prime-rl find by its name, once it is installed.
    """
    one_of("form", form, FORMS, "export")
    check_absent(folder, "export")
    values = FORMS[form](id, settings(set_))
    write_templates(folder, templates_in(f"export_{form}"), values)
    files = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    console.print(f"{folder}: {', '.join(files)}", soft_wrap=True)
    if own := _own_module(id):
        console.print(f"Copy the module {own} into it.", soft_wrap=True)
