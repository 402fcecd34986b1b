"""Rules about nodes, each in one module, for both front ends: sessions (`noderules`) and profiles (`profiles/plugins`).

A rule is a function over the nodes and the wishes of a class of pods. It returns codes or raw scores, and does not
depend on sessions, profiles or the texts of messages.
"""
