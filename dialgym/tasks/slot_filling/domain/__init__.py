"""Domains of tasks: an ontology of slots, a database of rows, and goals drawn from both."""

from dialgym.tasks.slot_filling.domain.database import EntityDatabase, read_database
from dialgym.tasks.slot_filling.domain.domain import Domain, find_faults, load_domain, read_domain
from dialgym.tasks.slot_filling.domain.goals import GoalGenerator, SlotFillingGoal
from dialgym.tasks.slot_filling.domain.ontology import Ontology, parse_ontology, read_ontology

__all__ = [
    "Domain",
    "EntityDatabase",
    "GoalGenerator",
    "Ontology",
    "SlotFillingGoal",
    "find_faults",
    "load_domain",
    "parse_ontology",
    "read_database",
    "read_domain",
    "read_ontology",
]
