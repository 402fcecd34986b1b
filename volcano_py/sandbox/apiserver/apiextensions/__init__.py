"""CustomResourceDefinitions: validation of definitions, and serving their resources.

Kubernetes: k8s.io/apiextensions-apiserver.
"""
