"""The isolation of tests: from the checkout, from the user's settings, from the clock."""

import os
from pathlib import Path

from hypothesis import HealthCheck, settings

from dialgym.cli.benchmark import newest_run
from dialgym.io.cache import cache_dir
from dialgym.viewer.inputs import newest_runs


def test_a_test_begins_in_an_empty_folder(tmp_path):
    assert Path.cwd() == tmp_path
    assert not list(tmp_path.iterdir())
    assert newest_run(Path("runs")) is None
    assert newest_runs() == []


def test_the_users_settings_and_caches_are_not_seen(tmp_path_factory):
    ours = tmp_path_factory.getbasetemp().parent
    assert [name for name in os.environ if name.startswith("DIALGYM_")] == ["DIALGYM_CACHE"]
    assert cache_dir().is_relative_to(ours)
    assert Path(os.environ["HF_HOME"]).is_relative_to(ours)


def test_no_example_of_a_property_has_a_deadline():
    assert settings.default.deadline is None
    assert HealthCheck.too_slow in settings.default.suppress_health_check
    assert settings.default.database is None
