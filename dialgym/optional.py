"""Optional packages, imported by name, with one clear error where the extra is missing."""

import sys
import warnings
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

from dialgym.versions import VERSION

AGENTS = "agents"
HERE = Path(__file__).resolve().parents[1]
"""The folder in which both packages lie."""


def require(module: str, extra: str | None, purpose: str) -> ModuleType:
    """The module `module`, which `pip install "dialgym[extra]"` installs.

    Args:
        extra: None for a package that is in no extra, as it does not install everywhere.

    Raises:
        ImportError: it is not installed; the message says what needs it and how to get it.
    """
    try:
        return import_module(module)
    except ImportError as error:
        way = f'with: pip install "dialgym[{extra}]"' if extra else "as its documentation says."
        raise ImportError(
            f"{purpose} needs {module.partition('.')[0]}, which could not be imported ({error}). "
            f"Install it {way}"
        ) from error


def namesake() -> str:
    """Name the module that has the name of dialgym's package `agents`; empty where none has."""
    loaded = sys.modules.get(AGENTS)
    spec = None if loaded else find_spec(AGENTS)
    place = getattr(loaded, "__file__", None) or getattr(spec, "origin", None)
    if place is None or Path(place).resolve().parents[1] == HERE:
        return ""
    if Path(place).name == f"{AGENTS}.py":
        return (
            f"{place} has the name of dialgym's package {AGENTS!r}, and is imported in its place. "
            "Rename it, or run the command from another folder."
        )
    return (
        f"{place} is another package of the name {AGENTS!r} (the OpenAI Agents SDK, openai-agents, "
        "installs one). Keep the two in separate virtual environments."
    )


def check_one_distribution(version: str, file: str) -> None:
    """See that `agents` and `dialgym` belong together: one distribution brings both.

    Args:
        version, file: of the package `agents`.

    Raises:
        ImportError: they are of two versions; of one version in two places, a warning tells.
    """
    home = Path(file).resolve().parents[1]
    mixed = f"agents {version} of {home} and dialgym {VERSION} of {HERE}"
    advice = "Install dialgym once, or put one of the two folders first on PYTHONPATH."
    if version != VERSION:
        raise ImportError(f"expected both packages of one version; got {mixed}. {advice}")
    if home != HERE:
        warnings.warn(f"two copies of dialgym are mixed: {mixed}. {advice}", stacklevel=3)


def check_installed(extra: str, purpose: str, *modules: str) -> None:
    """Raise an ImportError unless all `modules`, which the extra installs, are there.

    Nothing is imported: for what is needed later, and should be missed at once.
    """
    missing = [module for module in modules if find_spec(module) is None]
    if missing:
        raise ImportError(
            f"{purpose} needs {', '.join(missing)}, which is not installed. "
            f'Install it with: pip install "dialgym[{extra}]"'
        )
