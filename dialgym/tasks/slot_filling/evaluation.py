"""When a dialogue was a success, and what it costs."""

from dialgym.domains.database import Database
from dialgym.domains.ontology import DONTCARE, NAME
from dialgym.rewards import Components, Cost
from dialgym.simulators.agenda.state import UserState

TURN = Cost("turn")
CLOSING = Cost("closing")
"""The system's answer to the user's goodbye, which the system has no choice in."""
SUCCESS = 20.0
COMPONENTS = (TURN.name, CLOSING.name, "success")
"""What the reward of either party is made of."""


def succeeded(user: UserState, database: Database) -> bool:
    """Whether all requests are answered, and the row named meets the goal as it is at the end."""
    name = user.requests.get(NAME)
    if name is None or user.open_requests() or name in user.unwanted(NAME):
        return False
    wanted = {c.slot: str(c.value) for c in user.constraints if not c.negated}
    if wanted.pop(NAME, name) not in (name, DONTCARE):
        return False
    return database.match_bits({NAME: name, **wanted}) > 0


def bonus(success: bool) -> Components:
    """What the end of a dialogue adds to the reward."""
    return {"success": SUCCESS} if success else {}
