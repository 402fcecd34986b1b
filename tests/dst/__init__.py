"""Deterministic simulation: the whole system in one process, with virtual time and injected faults.

    python -m tests.dst --seeds 100            100 runs
    python -m tests.dst --seed 17 --shrink     one run again, reduced to what it needs to fail

See docs/simulation-under-faults.md. `virtual` must be imported before the product: it replaces the clock and the random
numbers.
"""
