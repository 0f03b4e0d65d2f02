"""The agenda-based user simulator: a goal, and a stack of acts to say (Schatzmann et al. 2007)."""

from dialgym.tasks.slot_filling.user.reactions import listen
from dialgym.tasks.slot_filling.user.state import USERS, SlotFillingUserState, SlotUserBehaviour
from dialgym.tasks.slot_filling.user.user import SlotFillingUser

__all__ = [
    "USERS",
    "SlotFillingUser",
    "SlotFillingUserState",
    "SlotUserBehaviour",
    "listen",
]
