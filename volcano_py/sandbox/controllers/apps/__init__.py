"""Controllers of apps/v1: Deployments, ReplicaSets, StatefulSets, DaemonSets.

Kubernetes: pkg/controller/deployment, replicaset, statefulset and daemon.
"""
