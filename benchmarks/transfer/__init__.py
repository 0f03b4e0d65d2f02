"""Trained policies of the leaderboard, unchanged, in settings that they were not trained in.

| module | what is in it |
|---|---|
| `axes` | what is changed: how often the user is misheard, the user, the environment |
| `jobs` | `TransferJob`: a row of the leaderboard in one other setting |
| `report` | tables of figures with intervals over seeds, curves with bands, heat maps |
"""
