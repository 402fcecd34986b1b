"""The dashboard: pages about queues, jobs, nodes, evictions and cycles, live in a browser. Not in Volcano.

Two halves: the modules here watch the cluster with the user's rights and make page models, which are data; `ui` draws
page models, and is the only part that imports the UI library.
"""
