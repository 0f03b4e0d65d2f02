"""A policy over the values of a setting, in one command: a table, a file, a curve."""

import pytest

import dialgym
from dialgym.experiments import load_results
from dialgym.experiments.over import curves_over, plot_over
from dialgym.experiments.plots import new_figure
from dialgym.experiments.statistics import wilson
from dialgym.io.files import save_figure
from tests.support.commands import fail, succeed

ID = "dialgym/SlotFilling-act-v0"
PNG = b"\x89PNG\r\n"
RATES = (0, 0.3, 0.5)


@pytest.fixture(scope="module")
def results():
    return [dialgym.evaluate("handcrafted", ID, 30, (0, 1), {"error_rate": rate}) for rate in RATES]


def test_one_command_scores_each_value(results, tmp_path):
    pytest.importorskip("matplotlib")
    json, picture = tmp_path / "over.json", tmp_path / "pictures" / "over.png"
    options = ["-n", "30", "--seeds", "0,1", "--json", str(json), "--plot", str(picture)]
    text = succeed("evaluate", "handcrafted", ID, "--over", "error_rate=0,0.3,0.5", *options)
    flat = " ".join(text.split())
    assert all(f"handcrafted, error_rate={rate}" in flat for rate in RATES)
    found = load_results(json)
    assert [result.env_kwargs for result in found] == [{"error_rate": rate} for rate in RATES]
    assert [r.mean_return for r in found] == [r.mean_return for r in results]
    assert found[0].success > found[2].success
    assert picture.read_bytes().startswith(PNG)


def test_a_picture_may_have_a_name_without_a_suffix(tmp_path):
    pytest.importorskip("matplotlib")
    save_figure(new_figure(2, 2), tmp_path / "curve")
    assert [file.name for file in tmp_path.iterdir()] == ["curve"]
    assert (tmp_path / "curve").read_bytes().startswith(PNG)


def test_the_curves_are_success_and_return_with_intervals(results, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    drawn = []
    monkeypatch.setattr("dialgym.experiments.over.save_figure", lambda f, path: drawn.append(f))
    plot_over(results, "error_rate", tmp_path / "a.png")
    success, returns = drawn[0].axes
    line, _, (bars,) = success.containers[0].lines
    assert list(line.get_xdata()) == list(RATES)
    assert list(line.get_ydata()) == [100 * result.success for result in results]
    low, high = bars.get_segments()[0][:, 1]
    assert (low, high) == pytest.approx([100 * x for x in wilson(results[0].success, 60)[1:]])
    (line, _, _) = returns.containers[0].lines
    assert list(line.get_ydata()) == [result.mean_return for result in results]
    assert success.get_xlabel() == "error rate"
    assert success.get_ylabel() == "success, %"


def test_values_that_are_no_numbers_and_several_environments(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    ids = ["dialgym/Wordle-20-v0", "dialgym/Wordle-200-v0"]
    found = [dialgym.evaluate("random", ids, 3, (0,), {"hard_mode": on}) for on in (False, True)]
    assert len(curves_over(found, "hard_mode")) == 2
    drawn = []
    monkeypatch.setattr("dialgym.experiments.over.save_figure", lambda f, path: drawn.append(f))
    plot_over(found, "hard_mode", tmp_path / "a.png")
    axes = drawn[0].axes[0]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["False", "True"]
    assert [c.get_label() for c in axes.containers] == [
        "Wordle-20-v0, random", "Wordle-200-v0, random"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--over", "error_rate"], "--over: expected a setting and its values"),
        (["--over", "error_rate=0,0"], "--over: expected a setting and its values, each once"),
        (["--over", "eror_rate=0,1"], "unexpected keyword argument 'eror_rate'"),
        (["--plot", "a.png"], "--plot: expected --over too"),
        (
            ["--over", "error_rate=0,1", "--plot", "a.foo"],
            "a.foo: expected a name that ends in .png, .svg or .pdf, got '.foo'",
        ),
    ],
)
def test_what_is_no_list_of_values(options, message):
    assert message in fail("evaluate", "handcrafted", ID, "-n", "1", *options)
