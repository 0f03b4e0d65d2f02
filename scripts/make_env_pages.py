"""The pages on environments, made from the registry, the docstrings and the spaces themselves.

A hook of mkdocs, which gets `environments/index.md` and a page for each task.
"""

import inspect
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any

import gymnasium as gym
from sample_dialogues import as_html, as_png, sample_of
from token_tables import HEAD as TOKEN_HEAD
from token_tables import as_tokens

from dialgym.experiments.tables import markdown_table
from dialgym.io.objects import load
from dialgym.registry import Row, entries

HEAD = ("name", "meaning")
SECTION = re.compile(r"^(Args|Attributes|Raises|Returns|Versions):$")
ITEM = re.compile(r"^    (\w+): (.*)$")


def rows() -> list[Row]:
    """The rows of the registry, those of one task together."""
    unique = {entry.row.name: entry.row for entry in entries().values()}
    return sorted(unique.values(), key=lambda row: row.task)


def table(head: Iterable[str], lines: Iterable[Iterable[object]]) -> str:
    """A Markdown table."""
    return markdown_table([list(head), *([str(cell) for cell in line] for line in lines)])


def environments() -> str:
    """The table of all environments, with links to their pages."""
    lines = []
    for row in rows():
        name = f"[`{row.id(row.views[0])}`](./{slug(row)}.md)"
        turns = made(row, row.views[0]).task.facts.turn_limit
        lines.append((name, row.description, sizes(row), turns))
    return table(("id", "what", "actions, length", "turns"), lines)


def made(row: Row, view: str) -> Any:
    return gym.make(row.id(view)).unwrapped


def sizes(row: Row) -> str:
    """Number of actions in the first view, and length of its observation."""
    env = made(row, row.views[0])
    return f"{env.action_space.n}, {env.observation_space.shape[0]}"


def slug(row: Row) -> str:
    """The name of a task's page: that of its folder."""
    return row.task.partition(":")[0].rpartition(".")[2]


def index() -> str:
    """The page that lists the environments, with a picture of each task."""
    return f"""# Environments

{gallery()}

Each environment comes in all [views](../concepts.md#views): tokens, utterances
(`...-utterance-v0`), acts (`...-act-v0`) where the task has them, batched (`gym.make_vec`,
`dialgym.sb3_vec_env`), and with both parties as agents (`dialgym.aec_env`, `dialgym.parallel_env`).
Actions is the number of tokens, or of summary acts in an act view; length is that of the
observation, and turns the most utterances of the learner.

{environments()}
This page and those of the tasks are made from `envs_registry.yaml`, the docstrings and the spaces
themselves; pictures and dialogues are episodes of a scripted policy.
"""


def gallery() -> str:
    """A card for each task: its picture, its name, what it is."""
    cards = []
    for name, first in tasks():
        cls = load(first[0].task)
        cards.append(
            f"-   [![{cls.name}]({name}.png)]({name}.md)\n\n"
            f"    **[{cls.name}]({name}.md)**\n\n    {summary(cls)}\n"
        )
    return '<div class="grid cards gallery" markdown>\n\n' + "\n".join(cards) + "\n</div>"


def tasks() -> list[tuple[str, list[Row]]]:
    """The page's name and the rows of each task."""
    return [(name, list(variants)) for name, variants in groupby(rows(), key=slug)]


def summary(cls: type) -> str:
    """The first paragraph of a docstring, in one line."""
    return " ".join(next(blocks(inspect.getdoc(cls) or "")))


def page(name: str, variants: list[Row]) -> str:
    """The page of a task and of all its environments."""
    cls, shown = load(variants[0].task), sample_of(variants[0])
    text = prose(cls)
    rules = text.partition("\n\n")[2]
    picture = f"![{cls.name}, at the end of the dialogue below]({name}.png){{ .task-picture }}\n"
    said = (
        f"An episode of `{shown.policy}` in `{shown.env_id}`, seed {shown.job[0]}; its return is "
        f"{shown.episode_return:.4g}.\n"
    )
    parts = [f"# {cls.name}\n", summary(cls) + "\n", picture, at_a_glance(variants[0])]
    parts += ["## A dialogue\n", said, as_html(shown)]
    if "token" in variants[0].views:
        how, tokens = as_tokens(variants[0], shown.policy, shown.job[0])
        parts += ["## A token view\n", how, table(TOKEN_HEAD, tokens)]
    parts += ["## Rules\n", rules]
    parts += ["## Parties\n", facts(variants[0]), "## Environments\n", variants_of(variants)]
    return "\n".join(parts)


def at_a_glance(row: Row) -> str:
    """Code that makes it, and the spaces of its views."""
    first = row.id(row.views[0])
    code = f'```python\nimport dialgym\nimport gymnasium as gym\n\nenv = gym.make("{first}")\n```\n'
    lines = []
    for view in row.views:
        env = made(row, view)
        spaces = shown_space(env.observation_space), shown_space(env.action_space)
        lines.append((f"`{row.id(view)}`", *spaces))
    return code + "\n" + table(("view", "observation", "action"), lines)


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
        return f"### {section}\n\n" + table(HEAD, ((f"`{n}`", what) for n, what in items))
    lines_of = ((f"`{name}`", f"`{defaults[name]!r}`", what) for name, what in items)
    return "### Arguments\n\n" + table(("argument", "default", "meaning"), lines_of)


def facts(row: Row) -> str:
    """Facts of the task, and the policies of its parties."""
    task = gym.make(row.id(row.views[0])).unwrapped.task  # type: ignore[attr-defined]
    lines = [
        (party, task.facts.longest[party], bounds(task.facts.returns[party]), hidden(task, party),
         "yes" if party in task.facts.may_end else "no",
         ", ".join(f"`{name}`" for name in task.speakers.get(party, {})))
        for party in task.parties
    ]  # fmt: skip
    head = ("party", "longest utterance", "return", "not told", "may end", "can be played by")
    options = ", ".join(f"`{name}`" for name in task.options) or "none"
    limit = (
        "An utterance of a party that may end can be the last one. Turn limit, in utterances of "
        f"the learner: {task.facts.turn_limit} (`{row.id(row.views[0])}`).\n"
    )
    return table(head, lines) + f"\n{limit}\nOptions of `reset`: {options}.\n"


def bounds(pair: tuple[float, float]) -> str:
    return f"{pair[0]:g} to {pair[1]:g}"


def hidden(task: Any, party: str) -> str:
    return ", ".join(task.facts.hidden.get(party, ())) or "-"


def variants_of(variants: list[Row]) -> str:
    """One table of a task's environments, in place of `gym.make` arguments."""
    lines = []
    for row in variants:
        settings = ", ".join(f"`{name}={value!r}`" for name, value in row.settings.items())
        lines.append(
            (f"`{row.id(row.views[0])}`", row.description, settings or "defaults", sizes(row),
             *references(row), ", ".join(row.tags))
        )  # fmt: skip
    text = (
        "Each row has the views above, with the names in the same form. The mean returns are "
        "those that [scores](../benchmark.md) are normalised by; where two are given, the second "
        "is that of built-in data in the place of the original, which may not be at hand.\n\n"
    )
    head = ("id", "what", "settings", "actions, length", "`random`", "expert", "tags")
    ids = ", ".join(f"`{row.id(view)}`" for row in variants for view in row.views)
    every = f"\n<details markdown><summary>All ids</summary>\n\n{ids}\n\n</details>\n"
    return text + table(head, lines) + every


def references(row: Row) -> tuple[str, str]:
    """The mean returns of the random policy and of the expert, with the expert's name."""
    both = [scores for scores in (row.scores, row.builtin_scores) if "expert" in scores]
    if not both:
        return "not measured", "not measured"
    random, best = (" / ".join(str(scores[who]) for scores in both) for who in ("random", "expert"))
    return random, f"{best} (`{row.expert_policy or 'expert'}`)"


def shown_space(space: gym.Space) -> str:
    """A space in a few characters: the charset of a text is left out."""
    if isinstance(space, gym.spaces.Text):
        return f"`Text({space.min_length}, {space.max_length})`"
    return f"`{space}`"


def pages() -> dict[str, str]:
    """Every generated page by its path in the site."""
    made = {f"environments/{name}.md": page(name, variants) for name, variants in tasks()}
    return {"environments/index.md": index(), **made}


def pictures() -> dict[str, bytes]:
    """The picture of each task by its path in the site."""
    return {f"environments/{name}.png": as_png(sample_of(first[0])) for name, first in tasks()}


def on_config(config: Any) -> Any:
    """mkdocs: put the generated pages into the navigation."""
    for item in config.nav or []:
        if "Environments" in item:
            item["Environments"] = list(pages())
    return config


def on_files(files: Any, config: Any) -> Any:
    """mkdocs: add the generated pages."""
    from mkdocs.structure.files import File

    for path, content in {**pages(), **pictures()}.items():
        files.append(File.generated(config, path, content=content))
    return files
