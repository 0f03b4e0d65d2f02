"""Known vulnerabilities and licences of the pinned packages: ``make audit``.

``python scripts/audit.py PIP_AUDIT``: the vulnerabilities are those that pip-audit finds for
constraints.txt, where it is there and its service answers; else a line says that they were not
looked up, and why. The licences are those that the installed packages state of themselves.
"""

import json
import subprocess
import sys
from collections import defaultdict
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

CONSTRAINTS = Path(__file__).parents[1] / "constraints.txt"
SECONDS = 300


def main(tool: Path) -> int:
    """Print both; 1 where a vulnerability is known."""
    names = [line.partition("==")[0] for line in pins(CONSTRAINTS)]
    print(f"# Licences of {len(names)} packages\n")
    for licence, owners in sorted(licences(names).items()):
        print(f"{licence}: {', '.join(owners)}")
    print("\n# Known vulnerabilities\n")
    return vulnerabilities(tool)


def pins(path: Path) -> list[str]:
    """The lines of a file of constraints that pin a package."""
    lines = (line.partition("#")[0].strip() for line in path.read_text("utf-8").splitlines())
    return [line for line in lines if "==" in line]


def licences(names: list[str]) -> dict[str, list[str]]:
    """The packages by the licence that each states."""
    found = defaultdict(list)
    for name in names:
        try:
            found[licence_of(distribution(name))].append(name)
        except PackageNotFoundError:
            found["not installed here"].append(name)
    return dict(found)


def licence_of(package: Distribution) -> str:
    """Its expression, else its classifiers, else the first line of its field."""
    about = package.metadata
    if about.get("License-Expression"):
        return str(about["License-Expression"])
    marks = [c.rpartition(" :: ")[2] for c in about.get_all("Classifier") or () if "License" in c]
    said = (about.get("License") or "").strip().splitlines()
    return ", ".join(dict.fromkeys(marks)) or (said[0][:60] if said else "not stated")


def vulnerabilities(tool: Path) -> int:
    """Run pip-audit; 1 where it found some, 0 where it found none or could not look."""
    if not tool.is_file():
        return unknown("pip-audit is not installed (pip install pip-audit)")
    command = [str(tool), "--requirement", str(CONSTRAINTS), "--no-deps", "--disable-pip"]
    command += ["--format", "json", "--progress-spinner", "off"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
        packages = json.loads(done.stdout)["dependencies"]
    except subprocess.TimeoutExpired:
        return unknown(f"its service did not answer in {SECONDS} s")
    except (ValueError, KeyError, TypeError):
        return unknown((done.stderr.strip().splitlines() or ["no reason given"])[-1])
    return report(packages)


def report(packages: list[dict[str, Any]]) -> int:
    """Print what pip-audit says of packages; what its service does not know was not looked up."""
    skipped = [one for one in packages if "skip_reason" in one]
    if len(skipped) == len(packages):
        reasons = [one["skip_reason"] for one in skipped] or ["it named no package"]
        return unknown(f"its service knows none of {len(packages)} packages ({reasons[0]})")
    found = [one for one in packages if one.get("vulns")]
    for one in found:
        names = ", ".join(vulnerability["id"] for vulnerability in one["vulns"])
        print(f"{one['name']} {one['version']}: {names}")
    print(f"{len(packages) - len(skipped)} packages looked up, {len(found)} with vulnerabilities")
    if skipped:
        print(f"NOT LOOKED UP: {', '.join(one['name'] for one in skipped)}")
    return 1 if found else 0


def unknown(why: str) -> int:
    """Say that nothing was looked up."""
    print(f"NOT LOOKED UP: {why}")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
