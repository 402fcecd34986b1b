"""Calls to other programs: extenders and metrics sources. The calls run beside the cycles, and their responses are
inputs of later cycles."""
