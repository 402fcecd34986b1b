"""Objects by collection and revision: in memory for reads, in a data folder to survive restarts. Kubernetes: etcd."""
