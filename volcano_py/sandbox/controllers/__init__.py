"""The controllers of Kubernetes itself: one per module, with the names of kube-controller-manager.

Each decides in plain functions of objects and writes with the same verbs and admission as any client; `runner.py`
starts a sync when a relevant object changes. Nothing is polled, and without changes nothing is written.
"""
