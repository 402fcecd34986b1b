"""Bytes to values and back: JSON, YAML, protobuf, content negotiation. Kubernetes: runtime/serializer."""
