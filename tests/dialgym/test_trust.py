"""Names of code in settings: which are known, which are refused."""

import pytest

from dialgym.trust import allow, check_names, is_code


@pytest.mark.parametrize(
    "text",
    ["os:system", "a.b.c:D.e", "_x:_y", "agents:ChatAgent", "a:", "a:b c", "a:b:c", "a-b:c", "ä:b"],
)
def test_what_names_code(text):
    assert is_code(text)


@pytest.mark.parametrize(
    "text", ["hf:gpt2", "visdial:hf:a/b", "5:30", "at 5:30", ":b", "C:/data", r"C:\data"]
)
def test_what_does_not(text):
    assert not is_code(text)


HIDDEN = [
    "os:system",
    {"os:system": 1},
    {"rewards": {"x": {"reward": "os:system"}}},
    {"simulator": {"name": "os:system"}},
    {"simulator": {"name": "lm", "model": "gpt"}},
    [["os:system"]],
    {"answerer": "remote:http://no.where/"},
    {"simulator": {"name": "agents:ActAgent", "model": "x.zip", "trust": True}},
]


@pytest.mark.parametrize("settings", HIDDEN)
def test_names_in_files_are_refused_until_a_caller_says_them(settings):
    with pytest.raises(ValueError, match=r"it\.json: it names '.*'.* trust=True \(--trust"):
        check_names(settings, "it.json")
    allow(settings)
    check_names(settings, "it.json")


def test_a_file_that_is_trusted():
    check_names({"simulator": "os:system"}, "it.json", trust=True)
    check_names({"simulator": "os:system"}, "another.json")


def test_what_every_file_may_name():
    check_names({"simulator": {"name": "agents:ChatAgent", "talker": "runs/x"}}, "it.json")
    check_names({"tokenizer": "hf:gpt2", "window": 3, "rewards": {"meteor": 0.5}}, "it.json")
