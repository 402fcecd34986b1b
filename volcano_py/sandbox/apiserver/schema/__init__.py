"""Types of built-in kinds and structural schemas of custom resources: decoding, pruning, validation.

Kubernetes: runtime.Scheme, and structural schemas.
"""
