"""The files of the page: nothing from elsewhere, no markup made of texts."""

import re

import pytest

from dialgym.viewer.api import open_viewer
from dialgym.viewer.app import static_files
from dialgym.viewer.query import Query

FILES = static_files()


@pytest.mark.parametrize("name", sorted(FILES))
def test_a_file_loads_nothing_from_elsewhere(name):
    text = FILES[name][1].decode("utf-8")
    named = set(re.findall(r"https?://[^\s\"'`)]+", text))
    assert named <= {"http://www.w3.org/2000/svg"}  # a name, which nobody fetches
    assert "@import" not in text


@pytest.mark.parametrize("name", sorted(name for name in FILES if name.endswith(".js")))
def test_no_script_makes_markup_of_texts(name):
    text = FILES[name][1].decode("utf-8")
    ways = ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function(")
    assert [way for way in ways if way in text] == []
    for module in re.findall(r'from "\./(.+?)"', text):
        assert module in FILES


def test_the_page_has_no_script_or_style_within():
    text = FILES["index.html"][1].decode("utf-8")
    assert re.findall(r"<script(?![^>]* src=)|<style| style=| on[a-z]+=", text) == []


def test_a_model_is_talked_to_with_what_was_said_before(tmp_path):
    heard = []

    def talk(text, history):
        heard.append((text, history))
        return "fine"

    viewer = open_viewer([], tmp_path, chat_reply=talk)
    assert viewer.sources(Query({}))["chat"]
    query = {"text": "how are you?", "history": ["hello", "hello"]}
    assert viewer.chat(Query(query)) == {"reply": "fine"}
    assert heard == [("how are you?", ["hello", "hello"])]
    with pytest.raises(ValueError, match="history of the request must be a list of texts"):
        viewer.chat(Query({"text": "a", "history": [1]}))


def test_what_a_model_thinks_stands_beside_the_turns_it_can_think_of(tmp_path):
    pytest.importorskip("pyarrow")
    import dialgym

    dialgym.collect("dialgym/Wordle-20-v0", "random", 2, path=tmp_path / "data")

    def values(one):
        if one[0]["episode"] == 1:
            raise ValueError("of another environment")
        return {0: {"value": -2.5}}

    viewer = open_viewer([str(tmp_path / "data")], tmp_path / "ratings", values=values)
    found, other = (viewer.replay(Query({"source": 0, "row": row})) for row in (0, 1))
    assert found["turns"][0]["value"] == -2.5
    assert "bits" in found["turns"][0]
    assert other["note"] == "of another environment"
    assert "bits" in other["turns"][0]
