"""Verbs and subresources of resources. Kubernetes: apiserver/pkg/endpoints/handlers."""
