"""Campaigns written for others: KernelBench's run layout, and a file that another machine continues."""
