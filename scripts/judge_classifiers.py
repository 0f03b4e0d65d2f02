"""Quality of the classifiers that rewards train on first use, on held-out parts of real data.

    python scripts/judge_classifiers.py --dailydialog data.zip --hate-offensive labeled_data.csv \\
        --sentences tests/dialgym/rewards/sentences.tsv tests/dialgym/rewards/unseen_sentences.tsv

Dialogue acts: taught on DailyDialog's training split, judged on its test split. Toxicity: a tenth
of the tweets of Davidson et al. (2017) is held out, drawn with `--seed`; the rules are judged on
the same tenth and on plain sentences, and their table of probabilities is measured on the rest of
the tweets and the sentences. DailyDialog is under CC BY-NC-SA: what is trained on it stays in
dialgym's cache.
"""

import argparse
import csv
import json
import zipfile
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from sklearn.metrics import accuracy_score, f1_score

from dialgym.rewards import Reply
from dialgym.rewards.abuse import KINDS
from dialgym.rewards.classifier import Example, read_labelled, trained_classifier
from dialgym.rewards.judges import Intent
from dialgym.rewards.toxicity import FIT, LEVELS, Toxicity, levels_of, worst_kind


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
    """Parts of a reply that the classifier reads."""
    return (*reply.context[-1:], reply.text)


def judge_toxicity(path: Path, seed: int, sentences: Sequence[Path]) -> None:
    """Levels of toxicity of a tenth of the tweets; what the table of the rules is made of."""
    examples = read_labelled(str(path), None, None, LEVELS)
    order = np.random.default_rng(seed).permutation(len(examples)).tolist()
    held_out = len(examples) // 10
    asked, taught = ([examples[i] for i in part] for part in (order[:held_out], order[held_out:]))
    replies, labels = [reply for reply, _ in asked], [label for _, label in asked]
    report("toxicity, most common", labels, [max(set(labels), key=labels.count)] * len(labels))
    report_levels("toxicity, rules", labels, Toxicity().probabilities(replies))
    classifier = trained_classifier(taught, FIT)
    report_levels("toxicity, trained", labels, classifier.probabilities(replies))
    for file in sentences:
        plain = read_sentences(file)
        found = Toxicity().probabilities([reply for reply, _ in plain])
        report_levels(file.stem, [label for _, label in plain], found)
    report_table(taught, [pair for file in sentences for pair in read_sentences(file)])


def read_sentences(path: Path) -> list[Example]:
    """Plain sentences with their levels, from a file of tab-separated rows."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        return [(Reply(row["text"]), row["level"]) for row in rows]


def report_levels(what: str, labels: Sequence[str], found: np.ndarray) -> None:
    """The row of levels, and the expected calibration error over ten bins, Guo et al. (2017)."""
    report(what, labels, [str(level) for level in levels_of(found)])
    sure, right = found.max(1), found.argmax(1) == np.array(labels, np.int64)
    bins = np.minimum((10 * sure).astype(int), 9)
    gaps = [abs(sure[bins == b].mean() - right[bins == b].mean()) * (bins == b).mean()
            for b in range(10) if (bins == b).any()]  # fmt: skip
    print(f"{'':22} expected calibration error {sum(gaps):.3f}")


def report_table(tweets: Sequence[Example], sentences: Sequence[Example]) -> None:
    """Shares of the levels by the worst kind of abuse, the mean of those of both sets."""
    shares = []
    for examples in (tweets, sentences):
        counts: dict[str, np.ndarray] = defaultdict(lambda: np.ones(len(LEVELS)))
        for reply, label in examples:
            counts[worst_kind(reply.text)][int(label)] += 1
        shares.append({kind: count / count.sum() for kind, count in counts.items()})
    for kind in ("none", *KINDS):
        print(f"{kind:22}", np.round(np.mean([share[kind] for share in shares], 0), 3).tolist())


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
    parser.add_argument("--sentences", type=Path, nargs="*", default=[], help="level, text: TSV")
    parser.add_argument("--seed", type=int, default=0, help="of what is held out of the tweets")
    arguments = parser.parse_args()
    if arguments.dailydialog:
        judge_acts(arguments.dailydialog)
    if arguments.hate_offensive:
        judge_toxicity(arguments.hate_offensive, arguments.seed, arguments.sentences)


if __name__ == "__main__":
    main()
