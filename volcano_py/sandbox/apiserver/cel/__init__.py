"""The CEL of validation rules and admission policies, with the functions that Kubernetes adds."""
