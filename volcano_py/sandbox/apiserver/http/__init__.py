"""HTTP: server, routing, discovery, watches and lists as streams, audit log.

Kubernetes: k8s.io/apiserver/pkg/server.
"""
