"""A service desk with tools, a policy and a database: a shop, or a telephone company."""

from dialgym.tasks.service_desk.task import ServiceDesk
from dialgym.tasks.service_desk.types import DeskState

__all__ = ["DeskState", "ServiceDesk"]
