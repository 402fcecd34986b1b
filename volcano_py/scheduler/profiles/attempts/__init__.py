"""One attempt to place a pod or a group: filters, scores, claims and binding."""
