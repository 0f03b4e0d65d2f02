"""The pages on environments, made from the registry, the docstrings and the spaces themselves.

A hook of mkdocs, which gets `environments/index.md` and a page for each task. By hand:

    python scripts/make_env_pages.py              print the table of environments
    python scripts/make_env_pages.py README.md    renew the table between its markers in a file
"""

import inspect
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

import gymnasium as gym

from dialgym.registry import Row, entries, load

BEGIN, END = "<!-- environments: made by scripts/make_env_pages.py -->", "<!-- end -->"
HEAD = ("name", "meaning")
SECTION = re.compile(r"^(Args|Attributes|Raises|Returns):$")
ITEM = re.compile(r"^    (\w+): (.*)$")


def rows() -> list[Row]:
    """The rows of the registry, those of one task together."""
    unique = {entry.row.name: entry.row for entry in entries().values()}
    return sorted(unique.values(), key=lambda row: row.task)


def table(head: Iterable[str], lines: Iterable[Iterable[object]]) -> str:
    """A Markdown table."""
    head = list(head)
    cells = [head, ["---"] * len(head), *lines]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in cells) + "\n"


def environments(link: str = "") -> str:
    """The table of all environments; `link` is where the pages lie, if they are to be linked."""
    lines = []
    for row in rows():
        first = row.id(row.views[0])
        env = gym.make(first).unwrapped
        name = f"[`{first}`]({link}{slug(row)}.md)" if link else f"`{first}`"
        sizes = f"{env.action_space.n}, {env.observation_space.shape[0]}"  # type: ignore[attr-defined,index]
        lines.append((name, row.description, sizes, env.task.facts.turn_limit))  # type: ignore[attr-defined]
    return table(("id", "what", "actions, length", "turns"), lines)


def slug(row: Row) -> str:
    """The name of a task's page: that of its folder."""
    return row.task.partition(":")[0].rpartition(".")[2]


def index() -> str:
    """The page that lists the environments."""
    return f"""# Environments

Actions is the number of tokens, or of summary acts in an act view (`...-act-v0`); length is that of
the observation, and turns the most utterances of the learner. Each environment also comes as
`...-utterance-v0`, and through `gym.make_vec`,
`dialgym.sb3_vec_env`, `dialgym.aec_env` and `dialgym.parallel_env` ([views](../concepts.md#views)).

{environments("./")}
This page and those of the tasks are made from `envs_registry.yaml`, the docstrings and the spaces
themselves.
"""


def page(variants: list[Row]) -> str:
    """The page of a task and of all its environments."""
    cls = load(variants[0].task)
    parts = [f"# {cls.name}\n", prose(cls), "## Facts\n", facts(variants[0])]
    parts += ["## Environments\n", *(variant(row) for row in variants)]
    return "\n".join(parts)


def prose(cls: type) -> str:
    """A class docstring as Markdown: lists of arguments become tables with their defaults."""
    defaults = {
        name: parameter.default for name, parameter in inspect.signature(cls).parameters.items()
    }
    text, section = [], ""
    for block in blocks(inspect.getdoc(cls) or ""):
        found = SECTION.match(block[0])
        section = found[1] if found else ""
        text.append(listing(section, block[1:], defaults) if section else "\n".join(block) + "\n")
    return "\n".join(text).replace("``", "`")


def blocks(text: str) -> Iterator[list[str]]:
    """The paragraphs of a text, as lists of lines."""
    for blank, lines in groupby(text.splitlines(), key=lambda line: not line.strip()):
        if not blank:
            yield list(lines)


def listing(section: str, lines: list[str], defaults: Mapping[str, Any]) -> str:
    """The items of a section as a table."""
    items: list[list[str]] = []
    for line in lines:
        found = ITEM.match(line)
        if found:
            items.append([found[1], found[2]])
        else:
            items[-1][1] += " " + line.strip()
    if section != "Args":
        return f"## {section}\n\n" + table(HEAD, ((f"`{n}`", what) for n, what in items))
    lines_of = ((f"`{name}`", f"`{defaults[name]!r}`", what) for name, what in items)
    return "## Arguments\n\n" + table(("argument", "default", "meaning"), lines_of)


def facts(row: Row) -> str:
    """What is always true of the task, and who can play its parties."""
    task = gym.make(row.id(row.views[0])).unwrapped.task  # type: ignore[attr-defined]
    lines = [
        (party, task.facts.longest[party], bounds(task.facts.returns[party]), hidden(task, party),
         ", ".join(f"`{name}`" for name in task.speakers.get(party, {})))
        for party in task.parties
    ]  # fmt: skip
    head = ("party", "longest utterance", "return", "not told", "can be played by")
    options = ", ".join(f"`{name}`" for name in task.options) or "none"
    return table(head, lines) + f"\nOptions of `reset`: {options}.\n"


def bounds(pair: tuple[float, float]) -> str:
    return f"{pair[0]:g} to {pair[1]:g}"


def hidden(task: Any, party: str) -> str:
    return ", ".join(task.facts.hidden.get(party, ())) or "-"


def variant(row: Row) -> str:
    """One environment: what it is, its settings, its spaces, its reference scores."""
    spaces = []
    for view in row.views:
        env = gym.make(row.id(view)).unwrapped
        spaces.append((f"`{row.id(view)}`", shown(env.observation_space), shown(env.action_space)))
    settings = (
        ", ".join(f"`{name}={value!r}`" for name, value in row.settings.items()) or "defaults"
    )
    return (
        f"### {row.name}\n\n{row.description}\n\n"
        f"Settings: {settings}. Tags: {', '.join(row.tags)}. Mean returns: {references(row)}.\n\n"
        + table(("id", "observation", "action"), spaces)
    )


def references(row: Row) -> str:
    """The mean returns that scores are normalised by."""
    known = {
        "": row.scores,
        "where built-in data takes the place of the original, ": row.builtin_scores,
    }
    pairs = [where + _pair(scores) for where, scores in known.items() if "expert" in scores]
    return "; ".join(pairs) or "not measured"


def _pair(scores: Mapping[str, Any]) -> str:
    expert = scores.get("expert_policy", "expert")
    return f"`random` {scores['random']}, `{expert}` {scores['expert']}"


def shown(space: gym.Space) -> str:
    """A space in a few characters: the charset of a text is left out."""
    if isinstance(space, gym.spaces.Text):
        return f"`Text({space.min_length}, {space.max_length})`"
    return f"`{space}`"


def pages() -> dict[str, str]:
    """Every generated page by its path in the site."""
    made = {"environments/index.md": index()}
    for name, variants in groupby(rows(), key=slug):
        made[f"environments/{name}.md"] = page(list(variants))
    return made


def on_config(config: Any) -> Any:
    """mkdocs: put the generated pages into the navigation."""
    for item in config.nav or []:
        if "Environments" in item:
            item["Environments"] = list(pages())
    return config


def on_files(files: Any, config: Any) -> Any:
    """mkdocs: add the generated pages."""
    from mkdocs.structure.files import File

    for path, text in pages().items():
        files.append(File.generated(config, path, content=text))
    return files


def renew(path: Path) -> None:
    """Replace what lies between the markers in a file by the table of environments."""
    before, begin, rest = path.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"{path}: expected the markers {BEGIN!r} and {END!r}. Add both.")
    part = path.with_suffix(".part")
    part.write_text(f"{before}{BEGIN}\n{environments()}{END}{after}", encoding="utf-8")
    os.replace(part, path)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        renew(Path(sys.argv[1]))
    else:
        print(environments())
