"""Controllers of batch/v1: Jobs, and removal of finished ones. Kubernetes: pkg/controller/job and ttlafterfinished."""
