"""Traces of jobs, replayed in virtual time."""
