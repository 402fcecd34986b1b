"""Mutation testing: small faults put into the rules, one at a time, to see whether a test finds them.

    python -m tests.mutation [--sample 120] [--seed 0]

No file is touched: `tests.mutation.plugin` compiles the module with its fault while a test process imports it.
"""
