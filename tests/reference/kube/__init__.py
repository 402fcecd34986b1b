"""kube-scheduler's rules, one a file, over pods as manifests."""
