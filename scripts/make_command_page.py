"""The reference of the command line, from the commands themselves: a hook of mkdocs."""

from collections.abc import Iterator
from typing import Any

import typer
from typer.main import get_command

PATH = "reference/command_line.md"


def page() -> str:
    """Every command with its arguments and options."""
    from dialgym.cli.app import app

    root = get_command(app)
    lines = ["# Command line\n", "Each command says the same with `--help`.\n"]
    return "\n".join([*lines, *commands(root, "dialgym")])


def commands(command: Any, path: str, parent: Any = None) -> Iterator[str]:
    """The sections of a command and of those below it."""
    # A command keeps its help option, whose names the outermost context has: `-h` is one of them.
    context = typer.Context(command, parent, info_name=path, **command.context_settings)
    if path != "dialgym":
        yield from section(command, path, context)
    for name in getattr(command, "commands", {}):
        child = command.get_command(context, name)  # some make their options only now
        if not child.hidden:
            yield from commands(child, f"{path} {name}", context)


def section(command: Any, path: str, context: Any) -> Iterator[str]:
    """The section of a command: its purpose, and a table of its arguments."""
    yield f"## {path}\n"
    yield from (f"{part}\n" for part in paragraphs(command.help or ""))
    rows = [
        f"| `{name}` | {escaped(what)} |"
        for param in command.get_params(context)
        if (record := param.get_help_record(context)) is not None
        for name, what in [record]
        if "--help" not in name
    ]
    if rows:
        yield "\n".join(["| argument or option | meaning |", "| --- | --- |", *rows, ""])


def paragraphs(text: str) -> list[str]:
    return [" ".join(part.split()) for part in text.split("\n\n") if part.strip()]


def escaped(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


def on_files(files: Any, config: Any) -> Any:
    """mkdocs: add the page."""
    from mkdocs.structure.files import File

    files.append(File.generated(config, PATH, content=page()))
    return files
