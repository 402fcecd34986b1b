"""PodGroups and CompositePodGroups as kube-scheduler 1.37 schedules them: a root group with all pods of its tree is the
unit of the queue, of an attempt and of preemption. Kubernetes: KEPs 4671, 5710, 5732 and 6012."""
