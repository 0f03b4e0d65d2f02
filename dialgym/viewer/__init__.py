"""The viewer of `dialgym view`: a page in the browser, served to this machine alone.

| module | content |
|---|---|
| `inputs`, `listing`, `training_runs` | runs, data sets and results that are shown |
| `replay` | parts of rewards and masks of stored dialogues, by replaying them |
| `pairs`, `ratings` | two policies on the same seeds; ratings of replies |
| `chat_session` | dialogues of a person, and their storing as a data set |
| `api`, `query`, `lines` | requests of the page; their parsing; dialogues as plain values |
| `app`, `guard` | HTTP; access token and origin checks |
| `static` | the page |
"""

from dialgym.viewer.api import Viewer, open_viewer

__all__ = ["Viewer", "open_viewer"]
