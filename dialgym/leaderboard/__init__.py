"""The leaderboard: panels of environments, a protocol, rows as files, and tables made of them.

| module | what is in it |
|---|---|
| `panels`, `reading` | `Panel`: what is played, learned by and counted, read strictly |
| `protocol` | how a policy is played for a row, and how a row is replayed |
| `measures` | of the replies that a row is scored by: language, and a judge |
| `submission` | `Submission`: a row as a file, and all that may be wrong with it |
| `board` | `Board`: means with intervals, ranks with ties, comparisons |
| `joined` | rows that another command has made |
| `standings`, `measure_tables`, `totals` | tables, pages, and what all panels have cost |
"""
