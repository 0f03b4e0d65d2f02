"""A remark for authors of tasks: whether an agent that begins at random could learn anything."""

import numpy as np

from dialgym.language import AnyText
from dialgym.rollouts import Player
from dialgym.rollouts.policies import RandomText
from dialgym.tasks import Task

REMEDY = (
    "An agent learns from differences alone: let it begin with the weights of a clone of a policy "
    "(dialgym collect, dialgym train bc, then --init-from) or of a language model, or reward "
    "smaller steps."
)


def start_remark(task: Task, episodes: int = 50, seed: int = 0) -> str | None:
    """Remark on how an agent that begins at random would fare; None where it could learn.

    The first party plays, says whatever it may, and should earn more at one time than at another.
    """
    jobs = [(seed, episode) for episode in range(episodes)]
    player = Player(task, RandomText(), num_envs=min(episodes, 8))
    found = np.concatenate([played.returns for played in player.play(jobs)])
    if len({*found.round(9).tolist()}) > 1:
        return None
    party = task.parties[0]
    same = (
        f"{episodes} dialogues in which the {party} said anything at random all earned {found[0]:g}"
    )
    if isinstance(task.static_constraint(party), AnyText):
        return (
            f"there is no constraint on what the {party} says, and no learnable start: {same}. Say "
            f"what it may say (static_constraint), which makes action masks of it. {REMEDY}"
        )
    return f"there is no learnable start: {same}. {REMEDY}"
