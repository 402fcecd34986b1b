"""High availability with real processes: what happens to a sandbox's work when its leaders fail. `python -m tests.ha`
prints the table."""
