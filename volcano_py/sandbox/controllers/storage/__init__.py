"""Controllers of volumes: binding of claims, protection of volumes and claims in use.

Kubernetes: pkg/controller/volume.
"""
