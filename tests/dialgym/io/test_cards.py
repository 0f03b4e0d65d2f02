"""Cards of data sets: which files they choose, and for which split."""

import pytest

from dialgym.io.archives import ArchiveMember
from dialgym.io.tables import parts_on_card

FILES = ("train.jsonl", "data/eval.jsonl", "data/deep/eval.jsonl", "other/a.jsonl", "/etc/x.jsonl")


def chosen(card: str) -> dict[str, str]:
    parts = [ArchiveMember(name, bytes) for name in FILES]
    parts.append(ArchiveMember("README.md", card.encode))
    found, splits = parts_on_card(parts, "it")
    assert [part.name for part in found] == list(splits) or not splits
    return splits


def card(configs: str) -> str:
    return f"---\nlicense: mit\nconfigs:\n{configs}\n---\n# It\n"


@pytest.mark.parametrize(
    ("configs", "found"),
    [
        ("- data_files: train.jsonl", {"train.jsonl": "train"}),
        ("- data_files: ['train.jsonl', ./other/*.jsonl]", {
            "train.jsonl": "train", "other/a.jsonl": "train",
        }),
        ("- data_files: [{split: dev, path: data/*.jsonl}]", {"data/eval.jsonl": "validation"}),
        ("- data_files: [{split: test, path: [data/**]}]", {
            "data/eval.jsonl": "test", "data/deep/eval.jsonl": "test",
        }),
        ("- data_files: [{split: test, path: '**/eval.jsonl'}]", {
            "data/eval.jsonl": "test", "data/deep/eval.jsonl": "test",
        }),
        ("- {config_name: a, data_files: x}\n- {config_name: b, default: true, data_files: "
         "train.jsonl}", {"train.jsonl": "train"}),
        ("- {config_name: a, data_files: x}\n- {config_name: default, data_files: train.jsonl}",
         {"train.jsonl": "train"}),
        ("- data_files: [train.jsonl, 'https://no.where/x.jsonl', ../x.jsonl]",
         {"train.jsonl": "train"}),
    ],
)  # fmt: skip
def test_what_is_chosen(configs, found):
    assert chosen(card(configs)) == found


def test_without_a_choice_it_is_all_files():
    for text in ("", "# It", "---\n# It", "---\nlicense: mit\n---\n", card("- config_name: a")):
        assert not chosen(text)


def test_several_configurations_without_a_default():
    with pytest.raises(ValueError, match=r"'it': its README.md has several .* \(a, b\)"):
        chosen(card("- {config_name: a, data_files: x}\n- {config_name: b, data_files: y}"))


def test_a_broken_card():
    with pytest.raises(ValueError, match=r"it, README.md: expected YAML"):
        chosen("---\na: [\n---\n")
