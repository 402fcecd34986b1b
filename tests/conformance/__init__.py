"""Comparison with recorded answers of Volcano and of a real API server.

The data stay outside the project; their folder is an option: `python -m tests.conformance --data FOLDER`.
"""
