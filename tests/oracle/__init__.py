"""An independent oracle for docs/promises.md: exhaustive search on small clusters.

description   a small cluster as plain data
arrangements  whether pods fit on nodes, in any arrangement
entitlement   which gangs a queue is entitled to, and which evictions serve them, by definition and by trying all
families      random clusters of one kind each
playing       the only module that imports the scheduler: it runs cycles until nothing changes
verdicts      the promises, applied to the cluster at rest and to what happened on the way

Nothing here but `playing` imports the product, and no rule is taken from its code. `python -m tests.oracle` prints the
table of all families.
"""
