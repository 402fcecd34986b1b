"""The controller of policy/v1: PodDisruptionBudgets. Kubernetes: pkg/controller/disruption."""
