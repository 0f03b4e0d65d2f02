"""Checks for authors of tasks: a task against its facts, and all its views against each other."""

from dialgym.testing.batches import check_batch
from dialgym.testing.scripted_returns import check_references, check_returns, start_remark
from dialgym.testing.tasks import check_task
from dialgym.testing.views import check_views

__all__ = [
    "check_batch",
    "check_references",
    "check_returns",
    "check_task",
    "check_views",
    "start_remark",
]
