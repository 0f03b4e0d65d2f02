"""Domains of tasks: an ontology of slots, a database of rows, and goals drawn from both."""

from dialgym.domains.database import Database, read_database
from dialgym.domains.domain import Domain, find_faults, load_domain, read_domain
from dialgym.domains.goals import Goal, GoalGenerator
from dialgym.domains.ontology import Ontology, parse_ontology, read_ontology

__all__ = [
    "Database",
    "Domain",
    "Goal",
    "GoalGenerator",
    "Ontology",
    "find_faults",
    "load_domain",
    "parse_ontology",
    "read_database",
    "read_domain",
    "read_ontology",
]
