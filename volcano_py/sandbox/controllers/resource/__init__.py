"""Kubernetes' controllers of dynamic resources."""
