"""Views of a task: everything that another library sees. Derived, never written per task."""
