"""Hollow kubelets: one for every Node. Pods bound to it start, run and end without containers."""
