"""How good the classifiers are that rewards train on first use, on real data with held-out parts.

    python scripts/judge_classifiers.py --dailydialog data.zip --hate-offensive labeled_data.csv

Dialogue acts: taught on DailyDialog's training split, judged on its test split. Toxicity: a tenth
of the tweets of Davidson et al. (2017) is held out, drawn with `--seed`; the lexicon is judged on
the same tenth. DailyDialog is under CC BY-NC-SA: what is trained on it stays in dialgym's cache.
"""

import argparse
import json
import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from sklearn.metrics import accuracy_score, f1_score

from dialgym.rewards import Reply
from dialgym.rewards.classifier import Example, read_labelled, trained_classifier
from dialgym.rewards.judges import LEVELS, Intent, Toxicity


def read_acts(path: Path, split: str) -> list[Example]:
    """Every turn of a split of DailyDialog in ConvLab's format that is labelled with an act."""
    with zipfile.ZipFile(path) as archive:
        dialogues = json.loads(archive.read("data/dialogues.json"))
    found = []
    for dialogue in (d for d in dialogues if d["data_split"] == split):
        texts = tuple(turn["utterance"] for turn in dialogue["turns"])
        for i, turn in enumerate(dialogue["turns"]):
            acts = turn["dialogue_acts"]["binary"]
            if acts:
                label = acts[0]["intent"]
                found.append((Reply(texts[i], texts[:i], (), {"act": label}), label))
    return found


def judge_acts(path: Path) -> None:
    """Dialogue acts of the test split, and of what in it the training split has not got."""
    taught, asked = read_acts(path, "train"), read_acts(path, "test")
    intent = Intent(examples=lambda: taught)
    found = intent.probabilities([reply for reply, _ in asked]).argmax(1)
    guesses = [intent.classes[i] for i in found]
    labels = [label for _, label in asked]
    report("acts, most common", labels, [max(set(labels), key=labels.count)] * len(labels))
    report("acts", labels, guesses)
    seen = {_read(reply) for reply, _ in taught}
    new = [i for i, (reply, _) in enumerate(asked) if _read(reply) not in seen]
    report("acts, unseen pairs", [labels[i] for i in new], [guesses[i] for i in new])


def _read(reply: Reply) -> tuple[str, ...]:
    """What the classifier reads of a reply."""
    return (*reply.context[-1:], reply.text)


def judge_toxicity(path: Path, seed: int) -> None:
    """Levels of toxicity of a tenth of the tweets."""
    examples = read_labelled(str(path), None, None, LEVELS)
    order = np.random.default_rng(seed).permutation(len(examples)).tolist()
    held_out = len(examples) // 10
    asked = [examples[i] for i in order[:held_out]]
    replies, labels = [reply for reply, _ in asked], [label for _, label in asked]
    classifier = trained_classifier([examples[i] for i in order[held_out:]])
    found = classifier.probabilities(replies).argmax(1)
    report("toxicity, most common", labels, [max(set(labels), key=labels.count)] * len(labels))
    report("toxicity, lexicon", labels, [str(level) for level in Toxicity().labels(replies)])
    report("toxicity", labels, [classifier.classes[i] for i in found])


def report(what: str, labels: Sequence[str], guesses: Sequence[str]) -> None:
    """Print one row: replies, accuracy, macro F1, F1 of each class."""
    classes = sorted(set(labels))
    each = f1_score(labels, guesses, labels=classes, average=None, zero_division=0)
    figures = f"accuracy {accuracy_score(labels, guesses):.4f}  macro F1 {np.mean(each):.4f}"
    parts = ", ".join(f"{name} {value:.3f}" for name, value in zip(classes, each))
    print(f"{what:22} n {len(labels):5}  {figures}  {parts}")


def main() -> None:
    """Read the arguments and judge what was named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dailydialog", type=Path, help="ConvLab's data.zip of DailyDialog")
    parser.add_argument("--hate-offensive", type=Path, help="labeled_data.csv of Davidson et al.")
    parser.add_argument("--seed", type=int, default=0, help="of what is held out of the tweets")
    arguments = parser.parse_args()
    if arguments.dailydialog:
        judge_acts(arguments.dailydialog)
    if arguments.hate_offensive:
        judge_toxicity(arguments.hate_offensive, arguments.seed)


if __name__ == "__main__":
    main()
