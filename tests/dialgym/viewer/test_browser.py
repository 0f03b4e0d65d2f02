"""The viewer in a real browser: look, play a game to its end, compare, rate; hostile text."""

import re

import pytest

import dialgym
from dialgym.datasets import Dataset
from dialgym.datasets.schema import arrow
from dialgym.viewer.api import open_viewer
from dialgym.viewer.ratings import PREFERENCES, SCORES
from dialgym.viewer.training_runs import SAMPLES
from tests.dialgym.viewer.test_inputs import make_results, make_run
from tests.support.browser import all_of, browser, click, go, one_of, until, viewer_server

SMALL = "dialgym/Wordle-20-v0"
ATTACK = "<script>window.hacked = 1</script><img src=x onerror='window.hacked = 1'>"


def hostile(dataset):
    """A dialogue whose texts and names are markup."""
    row = dataset[0]
    turns = [{**turn, "text": ATTACK, "tokens": None} for turn in row["turns"]]
    changed = {**row, "turns": turns, "policy": ATTACK, "kind": ATTACK}
    return Dataset(arrow().Table.from_pylist([changed], schema=dataset.table.schema))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    pytest.importorskip("pyarrow")
    folder = tmp_path_factory.mktemp("viewer")
    for policy in ("random", "optimal"):
        data = dialgym.collect(SMALL, policy, 12, path=folder / policy)
    hostile(data).save(folder / "hostile")
    run = make_run(folder / "run")
    (run / SAMPLES / "200.txt").write_text(f"# seed 1: return -1, success\nuser: {ATTACK}\n")
    make_results(folder / "scores.json", ids=(SMALL, "VisualDialogue-100-v0"))
    return folder


@pytest.fixture(scope="module")
def viewer(folder):
    names = ("random", "optimal", "hostile", "run", "scores.json")
    return open_viewer([str(folder / name) for name in names], folder / "ratings")


@pytest.fixture(scope="module")
def opened(viewer, tmp_path_factory):
    """A browser in which the viewer's page is open."""
    with viewer_server(viewer) as (url, guard), browser(tmp_path_factory.mktemp("browser")) as page:
        page.get(f"{url}/?token={guard.token}")
        yield page
        assert not page.execute_script("return window.hacked")


@pytest.fixture
def page(opened):
    """The same; whatever its console complains of is an error."""
    opened.get_log("browser")
    yield opened
    complaints = [entry["message"] for entry in opened.get_log("browser")]
    assert complaints == []


def press(page, *keys):
    for key in keys:
        one_of(page, "body").send_keys(key)


def fits(page):
    """Nothing is wider than the window."""
    script = "const e = document.documentElement; return e.scrollWidth - e.clientWidth"
    return page.execute_script(script) <= 0


def test_the_page_opens_with_all_that_it_was_given(page):
    go(page, "#/")
    one_of(page, "h1", "What there is to see")
    names = [card.text for card in all_of(page, ".card.link h3")]
    assert names[:5] == ["random", "optimal", "hostile", "run", "scores"]
    assert "token" not in page.current_url
    assert page.execute_script("return document.cookie") == ""  # no script can read the token


def test_dialogues_are_browsed_searched_and_scored(page, viewer):
    go(page, "#/data/0")
    one_of(page, ".stats", "12 dialogues")
    one_of(page, ".part", "bits open")  # what only the rules know
    until(lambda: len(all_of(page, ".row")) == 12, "twelve rows")
    press(page, "j", "j")
    one_of(page, ".head h2", "Dialogue 2")
    press(page, "k")
    one_of(page, ".head h2", "Dialogue 1")
    one_of(page, ".masks summary", "what was allowed")
    word = one_of(page, ".turn.own .bubble").text
    one_of(page, "input[type=search]").send_keys(word)
    one_of(page, ".stats", "of 12 dialogues")
    click(page, ".stars button[aria-label='4 of 5']")
    until(lambda: viewer.ratings.read(SCORES), "a score")
    (row,) = viewer.ratings.read(SCORES).values()
    assert row["score"] == 4
    until(lambda: len(all_of(page, ".stars [aria-pressed=true]")) == 4, "four stars")


def test_the_list_is_of_what_was_asked_last(page):
    go(page, "#/data/0")
    one_of(page, ".stats", "12 dialogues")
    script = """const fetched = window.fetched = fetch; window.fetch = async (path, given) => {
        window.again ||= window.held && path.startsWith("/api/dialogues/0?");
        if (!path.includes("q=nobody")) return fetched(path, given);
        window.held = true;
        await new Promise((answer) => { window.answer = answer; });
        setTimeout(() => { window.late = true; }, 100);
        return fetched(path, given);
    }"""
    page.execute_script(script)
    search = one_of(page, "input[type=search]")
    search.send_keys("nobody")
    until(lambda: page.execute_script("return window.held"), "a question")
    script = "arguments[0].value = ''; arguments[0].dispatchEvent(new Event('input'))"
    page.execute_script(script, search)
    until(lambda: page.execute_script("return window.again"), "another question")
    page.execute_script("window.answer()")
    until(lambda: page.execute_script("return window.late"), "the late answer")
    page.execute_script("window.fetch = window.fetched")
    assert one_of(page, ".stats").text.startswith("12 dialogues")


def test_a_chart_of_great_numbers_is_drawn(page):
    script = """const [more, done] = arguments; import("/static/chart.js").then(({ chart }) => {
        const lines = [{ name: "", xs: [1, 2], ys: [1e17, 1e17 + more], kind: "raw" }];
        done(chart({ lines }).querySelectorAll(".path").length);
    })"""
    assert [page.execute_async_script(script, more) for more in (0, 16)] == [1, 1]


def test_an_analysis_leads_to_failed_dialogues(page):
    go(page, "#/data/0")
    click(page, ".analysis summary", "Analysis")
    one_of(page, ".analysis h3", "Success by domain")
    one_of(page, ".analysis li", "not solved at its end")
    link = one_of(page, ".analysis li a")
    number = link.text
    link.click()
    one_of(page, ".head h2", f"Dialogue {number}")


def test_a_game_of_wordle_is_played_to_its_end(page):
    go(page, "#/play?env=Wordle-20-v0")
    fixed = one_of(page, "input[name=options]")
    fixed.send_keys("word=sleep")
    click(page, ".setup button.primary")
    one_of(page, ".status", "6 of 6 turns left")
    page.switch_to.active_element.send_keys(*"white", "\ue007")
    until(lambda: len(all_of(page, ".tile.absent")) == 4, "four grey tiles")
    assert len(all_of(page, ".tile.near")) == 1
    one_of(page, ".key.absent[data-key=w]")
    click(page, ".status button", "Hint")
    one_of(page, ".chip.hint")
    click(page, ".status button", "Take back")
    one_of(page, ".status", "6 of 6 turns left")
    assert all_of(page, ".chip.hint") == []  # it was of the turn that was taken back
    press(page, *"zzzzz", "\ue007")
    one_of(page, "#notice", "Not in the list of words")
    press(page, *["\ue003"] * 5)
    for letter in "sleep":
        click(page, f".key[data-key={letter}]")
    click(page, ".key[data-key=enter]")
    end = one_of(page, ".end")
    assert "Solved." in end.text
    assert "1 turn, return 0" in end.text
    assert "in private: sleep" in end.text
    assert len(all_of(page, ".tile.right")) == 5
    click(page, ".end button")
    until(lambda: not all_of(page, ".end"), "another game")


def test_the_other_party_is_played_too(page):
    go(page, "#/play?env=Wordle-20-v0&party=user")
    one_of(page, ".status", "you are the user")
    one_of(page, "textarea").send_keys("sleep\n")
    one_of(page, ".end", "Solved.")


def choose(page, name, value):
    script = """const e = document.querySelector(`[name=${arguments[0]}]`);
        e.value = arguments[1]; e.dispatchEvent(new Event("change"));"""
    page.execute_script(script, name, value)


def test_what_belongs_to_one_dialogue_is_not_shown_in_the_next(page):
    go(page, "#/play?env=TextNav-v0")
    one_of(page, "button.chip.act")
    choose(page, "env", SMALL)
    one_of(page, ".board")
    choose(page, "party", "user")
    one_of(page, ".status", "you are the user")
    assert all_of(page, "button.chip.act") == []
    for _ in range(2):
        one_of(page, "textarea").send_keys("sleep\n")
        yes = one_of(page, ".end .buttons button", "Yes")
        assert yes.get_attribute("aria-pressed") == "false"
        yes.click()
        one_of(page, ".end [aria-pressed=true]")
        click(page, ".end button.primary", "Another one")
        until(lambda: not all_of(page, ".end"), "another game")


def test_an_act_is_chosen(page):
    go(page, "#/play?env=CamRestaurants-Env1-act-v0")
    click(page, "button.chip.act", "request_food")
    one_of(page, ".turn.own .bubble", "request(food)")


def test_the_answerer_sees_the_picture(page):
    go(page, "#/play?env=VisualDialogue-v0&party=user")
    one_of(page, ".scene img")
    one_of(page, "textarea").send_keys("I can't tell\n")
    until(lambda: len(all_of(page, ".turn.system")) == 2, "another question")


def test_two_policies_are_compared_and_their_replies_rated(page, viewer):
    go(page, "#/compare?first=data:0:&second=data:1:")
    click(page, "button[name=go]")
    until(lambda: len(all_of(page, ".seeds tbody tr")) == 12, "twelve seeds")
    one_of(page, ".summary", "mean return")
    until(lambda: len(all_of(page, ".both .one")) == 2, "two dialogues")
    one_of(page, ".both .part", "bits open")
    marked = until(lambda: {e.text for e in all_of(page, ".both .mark .bubble")}, "where they part")
    assert len(marked) == 2
    click(page, ".summary a", "Rate")
    left, right = until(lambda: [reply.text for reply in all_of(page, ".reply .text")], "replies")
    press(page, "2")
    one_of(page, ".told", "kept: left was")
    (row,) = viewer.ratings.read(PREFERENCES).values()
    assert (row["chosen"], row["rejected"]) == (right, left)
    press(page, "3")
    one_of(page, ".progress", "2 of")
    click(page, ".reply")
    one_of(page, ".progress", "3 of")
    press(page, "u")
    one_of(page, ".progress", "2 of")
    assert len(viewer.ratings.read(PREFERENCES)) == 1


def test_policies_play_when_they_are_asked_for(page):
    go(page, "#/")
    one_of(page, "h1", "What there is to see")
    go(page, "#/compare?first=plays:random&second=plays:optimal&env=Wordle-20-v0&episodes=5")
    one_of(page, "select[name=first]")
    click(page, "button[name=go]")
    until(lambda: len(all_of(page, ".seeds tbody tr")) == 5, "five seeds")
    one_of(page, ".summary h3", "optimal")


def test_a_run_is_followed_while_it_learns(page, folder):
    go(page, "#/run/3")
    one_of(page, ".chip", "200 timesteps")
    one_of(page, ".path.main")
    curve = folder / "run" / "learning_curve.csv"
    curve.write_text(curve.read_text() + "5000,3,5,-1.5,0.6\n")
    (folder / "run" / ".lock").write_text("process 1")
    one_of(page, ".chip", "5,000 timesteps")
    one_of(page, ".chip", "learning now")


def test_results_are_a_table(page):
    go(page, "#/results/4")
    one_of(page, "td", "random")
    assert re.search(r"\[−\d", one_of(page, "table.figures").text)
    one_of(page, "td", "percentile")
    one_of(page, "h2", "VisualDialogue-100-v0: measures")


def test_hostile_text_stays_text(page):
    for address in ("#/data/2", "#/run/3", "#/%"):
        go(page, address)
        one_of(page, "body", "<script>window.hacked = 1</script>")
        assert not page.execute_script("return window.hacked")
    assert all_of(page, "main script, main img[src=x]") == []


@pytest.mark.slow
def test_themes_and_keys(page):
    go(page, "#/")
    before = page.execute_script("return getComputedStyle(document.body).backgroundColor")
    press(page, "t")
    dark = page.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert dark != before
    press(page, "t", "?")
    one_of(page, "dialog[open] h2", "Keys")
    click(page, "dialog button")


@pytest.mark.parametrize("width", [1300, 400])
@pytest.mark.slow
def test_every_page_fits_the_window(page, width):
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    try:
        for address, selector in [
            ("#/", ".card"),
            ("#/data/0", ".row"),
            ("#/data/2", ".row"),
            ("#/run/3", ".path"),
            ("#/results/4", "td"),
            ("#/compare", "select"),
            ("#/rate", "select"),
            ("#/play?env=Wordle-v0", ".key"),
            ("#/play?env=SlotFilling-v0", "textarea"),
        ]:
            go(page, address)
            one_of(page, selector)
            until(lambda: fits(page), f"{address} to fit {width} pixels")
    finally:
        page.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
