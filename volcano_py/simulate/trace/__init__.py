"""Replay of traces of jobs in virtual time."""
