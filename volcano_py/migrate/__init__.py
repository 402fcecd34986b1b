"""`volcano-py migrate`: check reports the differences for a cluster that runs Volcano, before anything is installed.

facts.py      the objects that are read from the cluster
findings.py   the differences, as pure functions of the facts
native_groups.py   those about groups of scheduling.k8s.io
"""
