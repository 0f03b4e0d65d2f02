"""Grids of trainings: every algorithm in every task with every seed, tested on the way.

| module | what is in it |
|---|---|
| `cells` | `Cell`: one training; `Protocol`: how long it learns, when it is tested |
| `jobs` | `Job`: a unit of work with a folder of its own; `perform` |
| `perform` | a cell of PyDial's benchmark, trained and tested from wherever it was cut off |
| `pools` | many cells at a time: processes of this machine, or a Ray cluster |
| `run` | `run_grid`, `run_jobs`: what is missing is done, with the time that is left |
| `results` | the figures of many cells, as files and as arrays |
| `tables`, `plots`, `calibration` | what is shown of them |
| `panels`, `cost` | `PanelJob`: a cell of the leaderboard's panels, and what it took |
| `published` | the figures of others that they stand beside |
"""
