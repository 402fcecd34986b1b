"""Admission plugins: webhooks, policies, LimitRanges, ResourceQuotas, namespaces."""
