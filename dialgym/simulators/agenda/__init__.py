"""The agenda-based user simulator: a goal, and a stack of acts to say (Schatzmann et al. 2007)."""

from dialgym.simulators.agenda.reactions import listen
from dialgym.simulators.agenda.state import USERS, Behaviour, UserState
from dialgym.simulators.agenda.user import AgendaUser

__all__ = ["USERS", "AgendaUser", "Behaviour", "UserState", "listen"]
