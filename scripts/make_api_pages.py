"""The reference of the public names: a page for each, written by mkdocstrings from its docstring.

A hook of mkdocs, which puts the pages into the navigation, below "Reference".
"""

import inspect
from functools import cache
from importlib import import_module
from typing import Any

MODULES = (
    "dialgym", "agents", "dialgym.experiments", "dialgym.datasets",
    "dialgym.language", "dialgym.rewards", "dialgym.rollouts", "dialgym.simulators",
    "dialgym.tasks", "dialgym.tasks.slot_filling.domain", "dialgym.testing", "dialgym.viewer",
)  # fmt: skip
"""The modules whose `__all__` is public."""


@cache
def names_of(module: str) -> list[str]:
    """The public names of a module, in the order of the alphabet."""
    return sorted(import_module(module).__all__, key=str.lower)


def path_of(module: str, name: str) -> str:
    """The path of a name's page in the site: what two modules name has one page, of the first."""
    found = home_of(module, name)
    first = next(m for m in MODULES if name in names_of(m) and home_of(m, name) == found)
    return f"reference/{first}/{name}.md"


@cache
def home_of(module: str, name: str) -> str:
    """Module and name of a definition, as mkdocstrings reads sources and follows no lazy import."""
    found = getattr(import_module(module), name)
    own = getattr(found, "__module__", "").partition(".")[0] in ("dialgym", "agents")
    if own and getattr(found, "__qualname__", None) == name:
        return f"{found.__module__}.{name}"
    return _assigned(module, name)


def _assigned(module: str, name: str) -> str:
    """Path of the assignment of a constant or a type, followed through the imports."""
    found = _sources(module.partition(".")[0])[f"{module}.{name}"]
    return found.canonical_path  # type: ignore[no-any-return]


@cache
def _sources(package: str) -> Any:
    """Modules that griffe finds in the sources of a package."""
    from griffe import GriffeLoader

    loader = GriffeLoader(search_paths=["."])
    loader.load(package)
    loader.resolve_aliases()
    return loader.modules_collection


def first_line(module: str, name: str) -> str:
    """Summary of a name, in a line."""
    found = getattr(import_module(module), name)
    text = inspect.getdoc(found) if callable(found) and hasattr(found, "__name__") else ""
    return " ".join((text or "").partition("\n\n")[0].split())


def index(module: str) -> str:
    """The page of a module: what it is for, and its names."""
    about = inspect.getdoc(import_module(module)) or ""
    lines = [
        f"| [`{name}`](../../{path_of(module, name)}) | {first_line(module, name)} |"
        for name in names_of(module)
    ]
    return "\n".join([f"# {module}\n", about, "", "| name | what |", "| --- | --- |", *lines, ""])


def page(module: str, name: str) -> str:
    """The page of a name: how to import it, its signature, what it is."""
    found = getattr(import_module(module), name)
    kind = "Class" if inspect.isclass(found) else "Function" if callable(found) else "Value"
    return (
        f"# {name}\n\n```python\nfrom {module} import {name}\n```\n\n"
        f"::: {home_of(module, name)}\n    options: {{heading: {kind}, toc_label: {kind}}}\n"
    )


def pages() -> dict[str, str]:
    """Every generated page by its path in the site."""
    made = {}
    for module in MODULES:
        made[f"reference/{module}/index.md"] = index(module)
        for name in names_of(module):
            made.setdefault(path_of(module, name), page(module, name))
    return made


def on_config(config: Any) -> Any:
    """mkdocs: put the generated pages into the navigation."""
    for section in config.nav or []:
        for item in section.get("Reference", []):
            for module in MODULES:
                if item == module or module in item:
                    paths = {name: path_of(module, name) for name in names_of(module)}
                    own = [{n: p} for n, p in paths.items() if p.startswith(f"reference/{module}/")]
                    item[module] = [f"reference/{module}/index.md", *own]
    return config


def on_files(files: Any, config: Any) -> Any:
    """mkdocs: add the generated pages."""
    from mkdocs.structure.files import File

    for path, text in pages().items():
        files.append(File.generated(config, path, content=text))
    return files
