"""Encoding and decoding: JSON, YAML, protobuf, content negotiation. Kubernetes: runtime/serializer."""
