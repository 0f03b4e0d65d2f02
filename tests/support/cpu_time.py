"""Plugin of pytest: CPU time of the tests, in all processes together, and the dearest of them.

Wall time says how busy a machine is; CPU time, that of a process and of those it has waited for,
what a test costs.
"""

import resource
from collections import Counter
from typing import Any

import pytest

BAR = 600
"""CPU-seconds that `make test` may cost in all: five minutes on two cores."""


def cpu_seconds() -> float:
    """CPU time so far of this process and of the ended ones that it has started."""
    used = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in used)


class CpuTime:
    """Counts the time between two reports, phase by phase.

    Workers of pytest-xdist have ended when the total is printed: it holds theirs already.
    """

    def __init__(self) -> None:
        self.last = 0.0
        self.tests: Counter[str] = Counter()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Any:
        report = yield
        now = cpu_seconds()
        report.cpu_seconds, self.last = now - self.last, now
        return report

    def pytest_collection_finish(self) -> None:
        self.last = cpu_seconds()

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.tests[report.nodeid] += getattr(report, "cpu_seconds", 0.0)

    def pytest_terminal_summary(self, terminalreporter: Any, config: pytest.Config) -> None:
        terminalreporter.section("CPU time")
        for line in self.lines(config.getoption("dearest")):
            terminalreporter.write_line(line)

    def lines(self, dearest: int) -> list[str]:
        """The total, after the `dearest` files and functions (of all their parameters)."""
        lines = []
        for kind, mark in (("file", "::"), ("test", "[")):
            costs: Counter[str] = Counter()
            for test, seconds in self.tests.items():
                costs[test.split(mark)[0]] += seconds
            lines += [f"{cost:7.1f} s  {kind} {name}" for name, cost in costs.most_common(dearest)]
        total = f"{cpu_seconds():7.1f} s  of all processes"
        return [*lines, f"{total}; `make test` may cost {BAR} s in all"]


def pytest_addoption(parser: pytest.Parser) -> None:
    """An option to see what is dear."""
    help = "list the N files and the N tests that cost the most CPU time"
    parser.addoption("--dearest", type=int, default=0, metavar="N", help=help)


def pytest_configure(config: pytest.Config) -> None:
    """Count from here on."""
    config.pluginmanager.register(CpuTime(), "cpu-time")
