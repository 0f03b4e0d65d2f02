"""Several domains in one dialogue as a PettingZoo environment: an agent for each of them."""

from collections.abc import Sequence
from typing import Any

from dialgym.registry import Environment, entry_of
from dialgym.views.making import split_kwargs
from dialgym.views.two_party import ActTwoPartyEnv


def multi_domain_env(
    ids: Sequence[Environment],
    *,
    least: int = 1,
    most: int = 3,
    include: float = 0.6,
    **kwargs: Any,
) -> ActTwoPartyEnv:
    """The PettingZoo AEC environment of slot filling in several domains; see `MultiDomain`.

    Its agents are the policies of the domains, which observe and choose what the act view of their
    own id has, and ``topics``; `agent_selection` is whose turn it is. Rewards are each agent's own.
    In the infos at the end ``is_success`` is that of all domains, ``metrics`` has each.

    Args:
        ids: slot-filling ids or tasks, ``dialgym/CamRestaurants-Env1-act-v0``; each of another
            domain.
        least, most, include: as in `MultiDomain`.
        kwargs: settings of the tasks, the same for each, and arguments of the view (`action_masks`,
            `masked_observations`, `render_mode`, `text_info`).

    Raises:
        ValueError: an id or argument is unknown, one is no slot filling, or two have one domain.
    """
    from dialgym.tasks.slot_filling import SlotFilling
    from dialgym.tasks.slot_filling.multi_domain import MultiDomain

    own: dict[str, Any] = {}
    tasks = []
    for entry in map(entry_of, ids):
        own = split_kwargs(entry, ActTwoPartyEnv, kwargs)
        task = own.pop("task")
        if not isinstance(task, SlotFilling):
            raise ValueError(
                f"multi_domain_env: expected ids of slot filling, such as "
                f"dialgym/CamRestaurants-Env1-act-v0; got {entry.id!r}. See `dialgym list`."
            )
        tasks.append(task)
    env = ActTwoPartyEnv(MultiDomain(tasks, least, most, include), **own)
    env.metadata = {**env.metadata, "name": "multi_domain"}
    return env
