"""An independent oracle for docs/promises.md: exhaustive search on small clusters.

description   a small cluster as plain data
arrangements  whether pods fit on nodes, in any arrangement
entitlement   which gangs a queue is entitled to, and which evictions serve them, by definition and by trying all
families      random clusters of one kind each
running       runs the scheduler's cycles until nothing changes
owned         gangs of owners: their pods appear one after the other, and the controller groups them
playing       runs a described cluster, by the two
verdicts      the promises, applied to the cluster at rest and to what happened on the way

Only `running`, `owned` and `playing` import the product, to run it; no rule is taken from its code.
`python -m tests.oracle` prints the table of all families.
"""
