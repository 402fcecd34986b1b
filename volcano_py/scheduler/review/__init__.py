"""Review of a scheduler configuration before it is used: what is wrong or odd, what is in force, what differs.

Volcano reports a mistake when the scheduler reads the file, and most oddities never.
"""
