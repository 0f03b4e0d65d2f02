"""Imports of optional packages, with one clear error where the extra is missing."""

from importlib import import_module
from importlib.util import find_spec
from types import ModuleType


def require(module: str, extra: str, purpose: str) -> ModuleType:
    """The module `module`, which `pip install "dialgym[extra]"` installs.

    Raises:
        ImportError: it is not installed; the message says what needs it and how to get it.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(
            f"{purpose} needs {module.partition('.')[0]}, which could not be imported ({error}). "
            f'Install it with: pip install "dialgym[{extra}]"'
        ) from error


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
