"""Authentication, authorization, impersonation and RBAC."""
