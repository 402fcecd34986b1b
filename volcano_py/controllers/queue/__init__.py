"""The queue controller: opens and closes queues, together with the queues below them."""
