"""Faults of a domain: one clear error for each."""

import json

import pytest

from dialgym.tasks.slot_filling import SlotFilling
from dialgym.tasks.slot_filling.domain.domain import find_faults, load_domain
from tests.support.commands import run, succeed
from tests.support.slot_domains import VALUES, row_of, rules_of, write_domain

ROWS = [row_of(0), row_of(1)]


def rules_with(**informable):
    rules = rules_of()
    return {**rules, "informable": {**rules["informable"], **informable}}


def without(slot):
    return [{name: cell for name, cell in row.items() if name != slot} for row in ROWS]


UNREADABLE = {
    "no JSON": ("{", ROWS, r"ontology '.*Toy-rules\.json': expected JSON \(Expecting"),
    "not an object": ("[]", ROWS, "of Toy: expected a JSON object; got list"),
    "no type": ({"informable": {}}, ROWS, "ontology of Toy: expected a text under 'type'; got n"),
    "values of another kind": (
        rules_with(food="thai"), ROWS, "expected a list of texts under 'food'; got 'thai'"),
    "a value that is no text": (
        rules_with(food=["thai", 3]), ROWS, r"a list of texts under 'food'; got \['thai', 3\]"),
    "no values": (rules_with(food=[]), ROWS, "at least one entry under 'food'; got none"),
    "a value twice": (
        rules_with(food=["thai"] * 2), ROWS, "each entry under 'food' once; got 'thai' twice"),
    "dontcare as a value": (
        rules_with(food=["thai", "dontcare"]), ROWS,
        "no entry under 'food' that has a meaning of its own; got 'dontcare'"),
    "a row called none": (
        rules_with(name=["none"]), ROWS,
        "no entry under 'name' that has a meaning of its own; got 'none'"),
    "no name": (
        rules_of(informable=VALUES), ROWS,
        "expected an informable slot 'name'; got food, area, parking, price"),
    "a name that cannot be asked for": (
        rules_of(requestable=["phone"]), ROWS, "'name' among the requestable slots; got phone"),
    "nothing to ask": (
        rules_of(system_requestable=[]), ROWS, r"requestable slots other than 'name'; got \[\]"),
    "a slot without values": (
        rules_of(system_requestable=["food", "colour"]), ROWS,
        "expected values of the system_requestable slot 'colour'; got none"),
    "a missing column": (
        rules_of(), without("area"),
        r"database '.*Toy-dbase\.db': expected a column for each slot of Toy; got none for 'area'"),
    "a missing column that users ask for": (rules_of(), without("phone"), "got none for 'phone'"),
    "an empty table": (rules_of(), [], "expected rows in the table 'Toy'; got an empty table"),
    "not SQLite": (rules_of(), b"name,food\n" * 99, "expected an SQLite file; got file is not"),
    "an empty file": (rules_of(), b"", "expected a table 'Toy'; got no table"),
}  # fmt: skip


@pytest.mark.parametrize("fault", UNREADABLE)
def test_files_that_are_no_domain(fault, tmp_path):
    rules, rows, message = UNREADABLE[fault]
    with pytest.raises(ValueError, match=message) as caught:
        load_domain(write_domain(tmp_path, rules, rows))
    assert "\n" not in str(caught.value)


def test_a_table_of_another_name(tmp_path):
    stem = write_domain(tmp_path, rules_of(), ROWS, table="Bars")
    with pytest.raises(ValueError, match="expected a table 'Toy'; got 'Bars'"):
        load_domain(stem)


def test_files_that_are_not_there(tmp_path):
    stem = write_domain(tmp_path, rules_of(), ROWS)
    (tmp_path / "Toy-dbase.db").unlink()
    with pytest.raises(ValueError, match="expected an SQLite file; got no file"):
        load_domain(stem)
    with pytest.raises(
        ValueError, match=r"expected a JSON file at .*Bars-rules\.json.*; got No such"
    ):
        load_domain(tmp_path / "Bars")


def faults(folder, *rows, rules=None):
    return find_faults(load_domain(write_domain(folder, rules or rules_of(), list(rows))))


def test_a_sound_domain(tmp_path):
    assert faults(tmp_path, *ROWS) == []


def test_a_value_that_the_ontology_does_not_list(tmp_path):
    rows = [*ROWS, row_of(0, name="venue 0", area="nroth"), row_of(1, area="west")]
    rows[2]["name"] = "venue 2"
    rules = rules_with(name=["venue 0", "venue 1", "venue 2"])
    rows[3]["name"] = "not available"
    (fault,) = faults(tmp_path, *rows, rules=rules)
    assert fault.startswith(
        "database of Toy: expected values of 'area' that the ontology lists, or 'not available'; "
        "got 'nroth' in row 3 (2 of 4 rows). Did you mean 'north'? Mend the row"
    )


def test_values_that_differ_in_case_alone(tmp_path):
    (fault,) = faults(tmp_path, *ROWS, rules=rules_with(food=[*VALUES["food"], "Thai"]))
    assert "values of 'food' that differ in more than case" in fault
    assert "got 'thai' and 'Thai'. Spell them alike" in fault


def with_slot(folder, slot):
    """The file of a domain of two alike rows that can be asked for a slot of that name."""
    rules = rules_of(requestable=("name", "food", "area", "phone", "addr", slot))
    rows = [row | {slot: "x"} for row in ROWS]
    file = folder / "toy.yml"
    file.write_text(json.dumps({**rules, "rows": rows}, ensure_ascii=False), "utf-8")
    return file


@pytest.mark.parametrize("slot", ["price range", "a=b", 'th"ai', "type"])
def test_a_slot_that_no_act_can_name_is_not_played(tmp_path, slot):
    file = with_slot(tmp_path, slot)
    (fault, *_) = find_faults(load_domain(file))
    assert "expected slots of letters, digits" in fault
    assert repr(slot) in fault
    assert "rename the slot wherever it stands" in fault
    with pytest.raises(ValueError, match="expected slots of letters, digits"):
        SlotFilling(file)


def test_letters_of_any_alphabet_name_a_slot(tmp_path):
    file = with_slot(tmp_path, "\u0446\u0435\u043d\u0430")
    assert find_faults(load_domain(file)) == []
    assert SlotFilling(file).domain.source == str(file)


def test_a_task_warns_of_a_value_that_the_ontology_does_not_list(tmp_path):
    stem = write_domain(tmp_path, rules_of(), [*ROWS, row_of(0, area="nroth")])
    with pytest.warns(UserWarning, match="'area' that the ontology lists, .* got 'nroth' in row 3"):
        SlotFilling(stem)


def test_names_that_rows_share(tmp_path):
    stem = write_domain(tmp_path, rules_of(), [row_of(0), row_of(0), row_of(1)])
    (fault,) = find_faults(load_domain(stem))
    assert "expected a 'name' of its own for each row; got 'venue 0' in 2 rows (shared" in fault
    assert "--shared-names" in fault
    assert find_faults(load_domain(stem), shared_names=True) == []


def test_rows_that_no_goal_fits(tmp_path):
    (fault,) = faults(tmp_path, row_of(0))
    assert fault.startswith("goals of Toy: expected constraints that 2 to 3 rows")


# The command


def test_the_command_reports_sizes():
    lines = dict(
        line.rstrip().split("  ", 1)
        for line in succeed("check-domain", "Laptops").splitlines()[:-1]
    )
    figures = {what: text.strip() for what, text in lines.items()}
    assert figures["domain"] == "Laptops (laptop)"
    assert figures["source"] == "built-in"
    assert figures["rows"] == "123"
    assert figures["belief vector"] == "257"
    assert figures["summary acts"] == "40"
    assert "processorclass 10" in figures["slots that the system asks for"]


def test_the_command_counts_what_is_not_used(tmp_path):
    stem = write_domain(
        tmp_path, rules_of(), [*ROWS, row_of(1, name="venue 2", area="not available")]
    )
    result = run("check-domain", str(stem))
    assert "food 2, area 1, parking 1, price 1" in result.stdout
    (cells,) = (line for line in result.stdout.splitlines() if line.startswith("cells "))
    assert cells.split("'not available'")[1].strip() == "area 1"


def test_the_command_fails_with_each_fault(tmp_path):
    stem = write_domain(tmp_path, rules_of(), [row_of(0), row_of(0), row_of(1, area="west")])
    result = run("check-domain", str(stem))
    assert result.exit_code == 1
    errors = result.stderr.splitlines()
    assert [error[:24] for error in errors] == ["error: database of Toy: e"[:24]] * 2
    assert run("check-domain", str(stem), "--shared-names").stderr.count("error: ") == 1


def test_the_command_fails_where_nothing_can_be_read(tmp_path):
    result = run("check-domain", str(tmp_path / "Bars"))
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr.startswith("error: ontology: expected a JSON file")
    assert len(result.stderr.splitlines()) == 1


def test_the_real_domains_pass(data):
    for path in sorted((data / "pydial").glob("*-rules.json")):
        succeed("check-domain", str(path), "--shared-names")
