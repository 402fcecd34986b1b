"""kube-scheduler's own filters and scores, as node rules over arrays.

The plugins `predicates` and `nodeorder` put them together. Formulas and messages are kube-scheduler's (1.36).
"""
