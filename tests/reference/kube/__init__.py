"""kube-scheduler's rules, one per file, over pods as manifests."""
