"""``dialgym zoo``: list the trained agents that come with the repository."""

from dialgym.cli.common import console
from dialgym.experiments.tables import markdown_table, rich_table

CAPTION = (
    "Means over the episodes of the leaderboard's row, with 95 % intervals. zoo:NAME is taken "
    "wherever a policy or a saved model is: dialgym evaluate, view, play --against, chat -m."
)


def zoo() -> None:
    """List the trained agents of the zoo: environment, learner, scores, size.

    The zoo is a folder of the repository, and in no package; DIALGYM_ZOO names another one.
    """
    from dialgym.experiments.zoo import COLUMNS, read_zoo

    rows = [agent.cells() for agent in read_zoo()]
    if console.is_terminal:
        console.print(rich_table(COLUMNS, {"": rows}, CAPTION, console.width))
    else:
        console.print(markdown_table([COLUMNS, *rows]), soft_wrap=True)
