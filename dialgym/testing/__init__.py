"""Checks for authors of tasks, and of any text environment (`check_environment`)."""

from dialgym.testing.batches import check_batch
from dialgym.testing.conformance import (
    CheckResult,
    CheckSettings,
    Report,
    check_environment,
    checks,
)
from dialgym.testing.scripted_returns import check_references, check_returns, start_remark
from dialgym.testing.sessions import (
    Answer,
    TextEnvironment,
    TextSession,
    gymnasium_environment,
    utterance_environment,
)
from dialgym.testing.tasks import check_task
from dialgym.testing.views import check_views

__all__ = [
    "Answer",
    "CheckResult",
    "CheckSettings",
    "Report",
    "TextEnvironment",
    "TextSession",
    "check_batch",
    "check_environment",
    "check_references",
    "check_returns",
    "check_task",
    "check_views",
    "checks",
    "gymnasium_environment",
    "start_remark",
    "utterance_environment",
]
