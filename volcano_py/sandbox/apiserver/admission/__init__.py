"""Admission plugins: webhooks, policies, LimitRanges, ResourceQuotas, namespaces.

Kubernetes: k8s.io/apiserver/pkg/admission and plugin/pkg/admission.
"""
