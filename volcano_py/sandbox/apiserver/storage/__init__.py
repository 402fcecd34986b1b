"""Objects by collection and revision: in memory for reads, in a data folder for restarts. Kubernetes: etcd."""
