"""The memory of workers: shared with the referee, read while they stand still, and who owns outputs."""
