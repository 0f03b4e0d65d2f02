"""Dialogues from elsewhere: reading files of any form, and making data sets of them.

| module | what is in it |
|---|---|
| `importer` | `import_dialogues`: from files or rows to a folder and a `Dataset` |
| `reading` | `Choices`; which files and rows are read, and as what |
| `conversations` | a row of data as a conversation, whatever its columns are called |
| `negotiations` | the original files of "Deal or No Deal?" |
| `tables` | tables with a row for each utterance, and outcomes that lie in another table |
| `speakers` | which speaker is the system; utterances in turns |
| `sizes` | a tokenizer and limits for dialogues |
| `report` | what was understood, what was left out and why |
"""

from dialgym.datasets.foreign.importer import import_dialogues
from dialgym.datasets.foreign.reading import Choices
from dialgym.datasets.foreign.report import Report

__all__ = ["Choices", "Report", "import_dialogues"]
