"""The zoo, made of the best trainings of panels that have their models on disk.

| module | what is in it |
|---|---|
| `candidates` | `Candidate`: the best training of an environment, by rows and tests |
| `folder` | the folder of the zoo: weights, cards, index |
"""
