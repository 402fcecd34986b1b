"""The generic verbs of a resource: read, create, update and patch, delete.

Kubernetes: k8s.io/apiserver/pkg/endpoints/handlers.
"""
