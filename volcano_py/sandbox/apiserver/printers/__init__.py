"""Tables for kubectl get: columns of built-in kinds, JSONPath for those of custom resources."""
