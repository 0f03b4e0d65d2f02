"""Experiments with trainings: learners in environments with seeds, trained, scored and written.

| module | contents |
|---|---|
| `job` | `Job`: a unit of work with a folder, what it needs and its result |
| `pools`, `run` | `run_jobs`: processes of this machine or a Ray cluster, with the time left |
| `training_job`, `staged_job` | a learner of a panel: trained, scored at the end or after stages |
| `panel_jobs` | every job of a panel |
| `retraining` | a row of the leaderboard trained again, beside its figure |
| `pydial_panel` | PyDial's benchmark as a panel with stages |
| `pydial_results`, `pydial_tables`, `pydial_plots`, `pydial_report` | its figures and tables |
| `calibration`, `published` | calibration of Q; figures of others |
"""
