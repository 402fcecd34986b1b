"""The evaluation of the soak; the run itself is `make soak`."""
