"""What all API objects share: Status errors, metadata, quantities, selectors. Kubernetes: k8s.io/apimachinery."""
