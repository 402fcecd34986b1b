"""Profiles in the scheduler's process: pod by pod, beside the session and on its model. Kubernetes: cmd/kube-scheduler.

document.py    the file of `--config`
feed.py        what the cache sees, as events of the profiles
operations.py  decisions of the profiles as operations of a plan
loop.py        when pods are tried
metrics.py     kube-scheduler's metrics
live.py        the parts put together, for the server
"""
