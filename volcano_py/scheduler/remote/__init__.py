"""Other programs that the scheduler asks: extenders and metrics sources. The calls run beside the cycles, and their
answers are inputs of the next one."""
