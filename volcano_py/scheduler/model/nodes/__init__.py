"""Nodes in columns: what they have, what pods use, and how they are grouped."""
