"""The same requests to kube-apiserver and to the sandbox: the answers of the first are recorded, those of the second
are compared with them."""
