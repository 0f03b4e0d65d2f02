"""`make audit`: licences as packages state them; what was not looked up is said."""

from email.message import Message
from types import SimpleNamespace

import pytest

from tests.support.scripts import ROOT, script


@pytest.fixture(scope="module")
def audit():
    return script("audit")


def stated(**fields):
    about = Message()
    for name, value in fields.items():
        about[name.replace("_", "-")] = value
    return SimpleNamespace(metadata=about)


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ({"License_Expression": "MIT", "License": "x"}, "MIT"),
        ({"Classifier": "License :: OSI Approved :: BSD License", "License": "x"}, "BSD License"),
        ({"License": "Apache 2.0\nand all its text"}, "Apache 2.0"),
        ({}, "not stated"),
    ],
)
def test_licences(audit, fields, found):
    assert audit.licence_of(stated(**fields)) == found


def test_every_pin_has_a_licence(audit):
    names = [line.partition("==")[0] for line in audit.pins(ROOT / "constraints.txt")]
    table = audit.licences(names)
    assert sum(map(len, table.values())) == len(names) > 50
    assert "numpy" not in table.get("not stated", [])


ONE = {"name": "a", "version": "1", "vulns": []}
BAD = {"name": "b", "version": "2", "vulns": [{"id": "CVE-1"}, {"id": "CVE-2"}]}
LOST = {"name": "c", "skip_reason": "not found"}


@pytest.mark.parametrize(
    ("packages", "code", "text"),
    [
        ([ONE], 0, "1 packages looked up, 0 with vulnerabilities\n"),
        ([ONE, BAD], 1, "b 2: CVE-1, CVE-2\n2 packages looked up, 1 with vulnerabilities\n"),
        ([ONE, LOST], 0, "1 packages looked up, 0 with vulnerabilities\nNOT LOOKED UP: c\n"),
        ([LOST], 0, "NOT LOOKED UP: its service knows none of 1 packages (not found)\n"),
        ([], 0, "NOT LOOKED UP: its service knows none of 0 packages (it named no package)\n"),
    ],
)
def test_what_was_found(audit, packages, code, text, capsys):
    assert audit.report(packages) == code
    assert capsys.readouterr().out == text


def test_without_the_tool(audit, tmp_path, capsys):
    assert audit.vulnerabilities(tmp_path / "none") == 0
    assert "NOT LOOKED UP: pip-audit is not installed" in capsys.readouterr().out
