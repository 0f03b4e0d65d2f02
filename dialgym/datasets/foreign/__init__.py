"""Import of dialogues from files of any form.

| module | content |
|---|---|
| `importer` | `import_dialogues`: from files or rows to a folder and a `Dataset` |
| `input_files` | `Choices`; the files and rows that are read, and their form |
| `conversations` | a row of data as a conversation, whatever the names of its columns |
| `lmrl_gym` | LMRL-Gym's data, read and written |
| `negotiations` | the original files of "Deal or No Deal?" |
| `columns` | tables with a row for each utterance, and outcomes that lie in another table |
| `speakers` | assignment of speakers to parties; utterances in turns |
| `sizes` | a tokenizer and limits for dialogues |
| `import_report` | counts of what was read and left out |
"""

from dialgym.datasets.foreign.import_report import ImportReport
from dialgym.datasets.foreign.importer import import_dialogues
from dialgym.datasets.foreign.input_files import Choices

__all__ = ["Choices", "ImportReport", "import_dialogues"]
