"""Hollow kubelets: every Node gets one, and pods bound to it start, run and end without a container."""
