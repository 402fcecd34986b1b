"""The queue controller: opens and closes queues together with their descendants."""
