"""Verbs and subresources: what a request to a resource does. Kubernetes: apiserver/pkg/endpoints/handlers."""
