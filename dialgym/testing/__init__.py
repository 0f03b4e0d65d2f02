"""Checks that the author of a task runs: the rules keep their word, and all views agree."""

from dialgym.testing.batches import check_batch
from dialgym.testing.tasks import check_task
from dialgym.testing.views import check_views

__all__ = ["check_batch", "check_task", "check_views"]
