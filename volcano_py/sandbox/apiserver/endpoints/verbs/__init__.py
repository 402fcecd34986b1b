"""The generic verbs of a resource: read, create, update and patch, delete."""
