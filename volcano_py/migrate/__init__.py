"""`volcano-py migrate check`: what would differ in a cluster that runs Volcano, before anything is installed.

facts.py      what is read of the cluster
findings.py   what differs, as pure functions of the facts
"""
