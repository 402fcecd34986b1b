"""Controllers of nodes: health, taints, evictions by taints.

Kubernetes: pkg/controller/nodelifecycle and tainteviction.
"""
