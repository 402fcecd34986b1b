"""Authentication, authorization, impersonation and RBAC.

Kubernetes: the authentication and authorization of k8s.io/apiserver.
"""
