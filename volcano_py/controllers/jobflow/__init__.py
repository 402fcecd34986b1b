"""The jobflow controller: creates the Jobs of a JobFlow in the order of their dependencies."""
