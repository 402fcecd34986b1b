"""Other programs that the scheduler calls: extenders and metrics sources. The calls run beside the cycles, and their
answers are inputs of the next one."""
