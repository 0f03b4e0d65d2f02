"""Endgames of chess: mate a lone king by a rook, a queen or two bishops; solved exactly."""

from dialgym.tasks.endgames.task import Endgames
from dialgym.tasks.endgames.types import EndgameState

__all__ = ["EndgameState", "Endgames"]
