"""Bargaining over items, goods or a price: exact values, scripted negotiators, best responses."""

from dialgym.tasks.bargain.task import Bargain
from dialgym.tasks.bargain.types import BargainState

__all__ = ["Bargain", "BargainState"]
