"""Patches, field ownership and server-side apply. Kubernetes: structured-merge-diff and the patch handlers."""
