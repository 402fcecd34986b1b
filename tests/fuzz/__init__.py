"""Fuzzing: what comes from outside raises only the declared errors, in bounded time, and puts no control character on a
terminal. `python -m tests.fuzz --minutes 5`."""
