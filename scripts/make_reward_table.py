"""The table of rewards, made from `rewards:` in envs_registry.yaml and the classes.

python scripts/make_reward_table.py                    print it
python scripts/make_reward_table.py docs/rewards.md    renew it between its markers in a file
"""

import sys
from inspect import signature
from pathlib import Path

import numpy as np

from dialgym.io.files import write_text
from dialgym.io.objects import load
from dialgym.rewards import make_reward
from dialgym.rewards.compose import RewardRow, reward_rows

BEGIN, END = "<!-- rewards: made by scripts/make_reward_table.py -->", "<!-- end -->"
NEEDED = {"learned": {"model": "PATH"}, "intent": {"model": "PATH"}}
"""Settings without which a reward cannot be made."""


def table() -> str:
    """A Markdown table of all rewards."""
    lines = ["| name | what | from, to | settings |", "| --- | --- | --- | --- |"]
    lines += [line(row) for row in reward_rows().values()]
    return "\n".join(lines) + "\n"


def line(row: RewardRow) -> str:
    """The row of one reward."""
    low, high = make_reward(row.name, NEEDED.get(row.name)).bounds
    bounds = f"{_number(low)}, {_number(high)}"
    return f"| `{row.name}` | {row.description} | {bounds} | {settings(row)} |"


def settings(row: RewardRow) -> str:
    """The settings of a reward with what they are by default."""
    parameters = signature(load(row.reward)).parameters.items()
    defaults = {name: parameter.default for name, parameter in parameters if name != "examples"}
    return ", ".join(f"`{name}={value!r}`" for name, value in {**defaults, **row.settings}.items())


def _number(bound: float) -> str:
    return f"{bound:g}" if np.isfinite(bound) else "any"


def renew(path: Path) -> None:
    """Replace what lies between the markers in a file by the table."""
    before, begin, rest = path.read_text("utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"{path}: expected the markers {BEGIN!r} and {END!r}. Add both.")
    write_text(path, f"{before}{BEGIN}\n{table()}{END}{after}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        renew(Path(sys.argv[1]))
    else:
        print(table())
