"""The controller of policy/v1: PodDisruptionBudgets."""
