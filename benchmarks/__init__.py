"""Benchmarks: `python -m benchmarks decision` and `sandbox`.

Not tests: they assert what must come out, and report how long it took.
"""
