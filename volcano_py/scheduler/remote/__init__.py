"""Calls to other programs: extenders and metrics sources. The calls run concurrently with the cycles, and their
responses are inputs of later cycles. Volcano calls both synchronously."""
