"""Dialogues of a shop, as rows from elsewhere, and what an import makes of them."""

import csv
import json

SAID = ["Hello there, you.", "Good day to you.", "I want tea, please.", "Here is your tea."]


MESSAGES = [{"role": role, "content": text} for role, text in zip(["user", "assistant"] * 2, SAID)]


def texts(dataset, row=0):
    return [turn["text"] for turn in dataset[row]["turns"]]


def parties(dataset, row=0):
    return [turn["party"] for turn in dataset[row]["turns"]]


def rewards(dataset, row=0):
    return [turn["reward"] for turn in dataset[row]["turns"]]


def write_jsonl(file, rows):
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join(map(json.dumps, rows)), "utf-8")
    return file


def write_csv(file, rows):
    with file.open("w", encoding="utf-8", newline="") as opened:
        table = csv.DictWriter(opened, list(rows[0]))
        table.writeheader()
        table.writerows(rows)
    return file
