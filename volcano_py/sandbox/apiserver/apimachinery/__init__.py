"""Common parts of all API objects: Status errors, metadata, quantities, selectors. Kubernetes: k8s.io/apimachinery."""
