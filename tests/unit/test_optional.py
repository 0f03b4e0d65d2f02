"""What is missing, and what is another package of the same name."""

import subprocess
import sys
from types import ModuleType

import pytest

from dialgym.cli.common import require_agents
from dialgym.optional import require


def test_a_missing_package_says_what_needs_it_and_how_to_get_it():
    with pytest.raises(ImportError, match=r'colours needs no_such_package.*"dialgym\[ui\]"'):
        require("no_such_package.part", "ui", "colours")


def test_our_own_agents_are_recognised():
    assert require_agents().__dialgym_agents__


def test_another_package_of_that_name_is_one_clear_error(monkeypatch):
    other = ModuleType("agents")
    other.__file__ = "/site-packages/agents/__init__.py"
    monkeypatch.setitem(sys.modules, "agents", other)
    with pytest.raises(ImportError, match="Keep the two in separate virtual environments"):
        require_agents()


PROBE = """
import subprocess
import sys
sys.modules["torch"] = None  # as if it were not installed
import agents
try:
    agents.train
except ImportError as error:
    print(error)
"""


def test_agents_without_torch_is_one_clear_error():
    run = subprocess.run([sys.executable, "-c", PROBE], capture_output=True, text=True, check=True)
    assert run.stdout == (
        "agents.train needs torch, which is not installed. "
        'Install it with: pip install "dialgym[agents]"\n'
    )
