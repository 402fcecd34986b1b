"""Controllers of v1: namespaces, garbage collection, quotas, service accounts, leftover pods."""
