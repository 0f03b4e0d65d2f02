"""An environment of each family in which models can speak, with its settings."""

FAMILIES = {
    "Wordle-20": {},
    "TwentyQuestions-16": {},
    "VisualDialogue-100": {},
    "SlotFilling": {"language": "english"},
    "MultiWOZ": {"language": "words"},
    "DailyDialog-Conversation": {"rewards": {"meteor": 1.0}},
    "Comments": {},
    "Logged": {},
}
