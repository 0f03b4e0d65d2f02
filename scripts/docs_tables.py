"""Tables of the documentation that are made from code: environments, rewards, algorithms, options.

Run ``python scripts/docs_tables.py`` after a row of envs_registry.yaml or of `agents.registry`, a
field of `agents.TrainConfig` or the zoo changes; a test holds pages and code equal. Each table
stands between markers, ``<!-- NAME: made by scripts/docs_tables.py -->`` and ``<!-- end -->``.
"""

from collections.abc import Callable, Mapping
from dataclasses import fields
from inspect import signature
from pathlib import Path

import numpy as np
from family_table import families

from agents.registry import ALGORITHMS
from agents.training.config import TrainConfig
from dialgym.experiments.tables import markdown_table
from dialgym.experiments.zoo import COLUMNS, read_zoo
from dialgym.io.files import write_text
from dialgym.io.model_settings import ModelSettings
from dialgym.io.objects import load
from dialgym.rewards import make_reward
from dialgym.rewards.compose import RewardRow, reward_rows

ROOT = Path(__file__).parents[1]
BEGIN, END = "<!-- {}: made by scripts/docs_tables.py -->\n", "<!-- end -->"
NEEDED = {name: {"model": "PATH"} for name in ("learned", "intent", "lm_judge")}
"""Settings without which a reward cannot be made."""


def rewards() -> str:
    """The rewards with their bounds and settings."""
    rows = [["name", "what", "from, to", "settings"]]
    for row in reward_rows().values():
        bounds = make_reward(row.name, NEEDED.get(row.name)).bounds
        span = ", ".join(f"{bound:g}" if np.isfinite(bound) else "any" for bound in bounds)
        rows.append([f"`{row.name}`", row.description, span, settings(row)])
    return markdown_table(rows)


def settings(row: RewardRow) -> str:
    """The settings of a reward with their defaults."""
    made = load(row.reward)
    shared = signature(ModelSettings).parameters if issubclass(made, ModelSettings) else {}
    defaults = {
        name: parameter.default
        for name, parameter in signature(made).parameters.items()
        if name not in ("examples", *shared)
    }
    own = ", ".join(f"`{name}={value!r}`" for name, value in {**defaults, **row.settings}.items())
    return f"{own}, those of a [language model](models.md#settings)" if shared else own


def algorithms() -> str:
    """The algorithms with their classes and what they learn from."""
    rows = [["name", "class", "learns from", "what it is"]]
    for row in ALGORITHMS.values():
        module, _, name = row.home.partition(":")
        package = module.partition(".")[0]
        rows.append([f"`{row.name}`", f"`{package}.{name}`", " and ".join(row.kind), row.summary])
    return markdown_table(rows)


def options() -> str:
    """The fields of a training."""
    rows = [["option", "`agents.train`", "what it sets", "same when resumed"]]
    for one in fields(TrainConfig):
        flags = ", ".join(f"`{flag}`" for flag in (one.metadata["flag"] or "").split(",") if flag)
        same = "yes" if one.metadata["identity"] else ""
        rows.append([flags, f"`{one.name}`", one.metadata["help"], same])
    return markdown_table(rows)


def zoo_agents() -> str:
    """The trained agents that come with the repository."""
    return markdown_table([COLUMNS, *(agent.cells() for agent in read_zoo())])


def zoo_commands() -> str:
    """Commands and code that try a trained agent, one of Wordle where there is one."""
    agents = sorted(read_zoo(), key=lambda agent: ("Wordle" not in agent.id, agent.name))
    place, environment = agents[0].place, agents[0].id.rpartition("/")[2]
    commands = {
        "dialgym zoo": "all of them, with their scores",
        f"dialgym evaluate {place}": "score one where it was trained",
        f"dialgym play {environment} --policy {place}": "watch it play",
        f"dialgym play {environment} --as user --against {place}": "play against it",
    }
    width = max(map(len, commands))
    shell = "".join(f"{command:<{width}}  # {what}\n" for command, what in commands.items())
    code = f'import agents\nimport dialgym\n\nmodel = agents.load("{place}")\n'
    code += "print(dialgym.evaluate(model, episodes=50, seeds=[0]))\n"
    return f"```bash\n{shell}```\n\n```python\n{code}```\n"


TABLES: Mapping[str, tuple[str, Callable[[], str]]] = {
    "environments": ("README.md", families),
    "zoo": ("README.md", zoo_commands),
    "zoo-agents": ("docs/quickstart.md", zoo_agents),
    "rewards": ("docs/rewards.md", rewards),
    "algorithms": ("docs/training.md", algorithms),
    "options": ("docs/training.md", options),
}
"""By the name in their markers: the page, and what makes them."""


def renewed(page: str, name: str, table: str) -> str:
    """The text of a page with a table between its markers.

    Raises:
        SystemExit: it has no such markers.
    """
    begin = BEGIN.format(name)
    before, found, rest = page.partition(begin)
    _, end, after = rest.partition(END)
    if not found or not end:
        raise SystemExit(f"{name}: expected the markers {begin.strip()!r} and {END!r}. Add both.")
    return f"{before}{begin}{table}{END}{after}"


def main() -> None:
    """Renew all tables."""
    for name, (page, table) in TABLES.items():
        path = ROOT / page
        write_text(path, renewed(path.read_text("utf-8"), name, table()))


if __name__ == "__main__":
    main()
