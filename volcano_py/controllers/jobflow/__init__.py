"""The jobflow controller: makes the Jobs of a JobFlow in the order of their dependencies."""
