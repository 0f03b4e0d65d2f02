"""Types reach a user: mypy and pyright read `py.typed`, and find what is wrong in a script."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.support.checkers import checker

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "tests" / "support" / "typed_user.py"
LINES = SCRIPT.read_text("utf-8").splitlines()
WRONG = {number for number, line in enumerate(LINES, 1) if line.endswith("# wrong")}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mypy", "pyright"])
def test_a_users_script_is_checked(name: str, tmp_path: Path) -> None:
    command = checker(name, tmp_path)
    done = subprocess.run([*command, str(SCRIPT)], capture_output=True, text=True, cwd=ROOT)
    places = re.findall(r"typed_user\.py:(\d+).*?error", done.stdout)
    assert {int(number) for number in places} == WRONG, done.stdout + done.stderr
