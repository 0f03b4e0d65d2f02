"""The viewer of `dialgym view`: a page in the browser, served to this machine alone.

| module | what is in it |
|---|---|
| `sources`, `listing`, `runs` | what is shown: runs, data sets, results; stored dialogues; runs |
| `replay` | parts of rewards and masks of stored dialogues, by holding them once more |
| `pairs`, `rating`, `ratings` | two policies on the same seeds; ratings of replies; their files |
| `seats`, `kept` | a person in the place of a party; such dialogues as a data set |
| `api`, `asked`, `lines` | what the page can ask; requests; dialogues as plain values |
| `app`, `guard` | HTTP, and who may ask |
| `static` | the page |
"""

from dialgym.viewer.api import Viewer, open_viewer

__all__ = ["Viewer", "open_viewer"]
