"""Reference scores of the registry: computed, and written into its text."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dialgym.experiments.evaluate import evaluate
from dialgym.io.files import write_text
from dialgym.registry import Row, entry_of
from dialgym.rollouts import Report
from dialgym.rollouts.episodes import every_secret
from dialgym.rollouts.player import make_dialogue

EPISODES = 20_000
"""Of a row that does not say how many."""
LONGEST = 101
"""Characters of a line of the registry, its end included."""


def reference_scores(
    row: Row, episodes: int | None = None, seed: int = 0, report: Report = lambda ended: None
) -> dict[str, Any]:
    """The mean returns of the random policy and the expert, as a row's `scores`.

    Where a task has a list of its secrets, each is played equally often. Chance that is left (a
    noisy answer, a tie that is broken at random, the random policy) is averaged over the episodes.
    Where a built-in domain stands in for another, its `builtin_scores`: see `scores_name`.
    Without `episodes` there are as many as before, or a few more for all secrets.
    """
    env_id, expert = row.id(row.views[0]), row.expert_name
    secrets = make_dialogue(env_id, {}).task.secrets()
    options = every_secret(secrets or [{}], episodes or episodes_of(row))
    episodes = len(options)

    def mean(policy: str) -> float:
        result = evaluate(policy, env_id, episodes, (seed,), report=report, options=options)
        return round(result.mean_return, 3)

    return {
        "random": mean("random"),
        "expert": mean(expert),
        "expert_policy": expert,
        "episodes": episodes,
        **({"secrets": "all"} if secrets else {}),
        "seed": seed,
    }


def episodes_of(row: Row) -> int:
    """Number of episodes that a row's scores are made of."""
    return int({**row.builtin_scores, **row.scores}.get("episodes", EPISODES))


def scores_name(row: Row) -> str:
    """Which of a row's scores `reference_scores` computes: those of what is played here."""
    return "builtin_scores" if entry_of(row.id(row.views[0])).stand_in else "scores"


def scores_line(scores: Mapping[str, Any], kind: str = "scores") -> str:
    """A row's `scores` or `builtin_scores`, as lines of envs_registry.yaml."""
    inside = ", ".join(f"{name}: {value}" for name, value in scores.items())
    line = f"    {kind}: {{{inside}}}\n"
    return line if len(line) <= LONGEST else f"    {kind}:\n      {{{inside}}}\n"


def with_scores(text: str, name: str, scores: Mapping[str, Any], kind: str = "scores") -> str:
    """The text of envs_registry.yaml with the scores of a row set; nothing else is touched.

    Raises:
        ValueError: the text has no such row.
    """
    head = rf"^  {re.escape(name)}:[ \t]*\n"
    match = re.search(rf"{head}(?:    .*\n)+", text, re.MULTILINE)
    if match is None:
        raise ValueError(f"with_scores: expected a row {name!r} under `environments:`; got none.")
    block = re.sub(rf"^    {kind}:.*\n(?:      .*\n)*", "", match[0], flags=re.MULTILINE)
    return text[: match.start()] + block + scores_line(scores, kind) + text[match.end() :]


def write_references(path: Path, scores: Mapping[tuple[str, str], Mapping[str, Any]]) -> None:
    """Set scores, by row's name and kind, in a registry file, atomically."""
    text = path.read_text("utf-8")
    for (name, kind), values in scores.items():
        text = with_scores(text, name, values, kind)
    write_text(path, text)


def rows_of(ids: Sequence[str]) -> list[Row]:
    """The registry's rows that the ids belong to, each once."""
    return list({row.name: row for row in (entry_of(env_id).row for env_id in ids)}.values())
