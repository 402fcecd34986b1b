"""kube-scheduler's default plugins, pod by pod and node by node. One module per rule."""
