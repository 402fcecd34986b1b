"""Rules about the devices that a pod claims. kube-scheduler: DynamicResources."""
