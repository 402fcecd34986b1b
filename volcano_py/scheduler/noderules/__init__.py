"""kube-scheduler's filters and scores over arrays of nodes.

The plugins `predicates` and `nodeorder` register them. Formulas and messages are kube-scheduler's (1.36).
"""
