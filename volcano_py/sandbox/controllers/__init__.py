"""The controllers of a Kubernetes cluster itself: one a module, named as kube-controller-manager names them.

Each decides in plain functions of objects and writes through the same verbs and admission as any client; `runner.py`
wakes them when an object that concerns them changes. Nothing is polled, and a cluster at rest writes nothing.
"""
