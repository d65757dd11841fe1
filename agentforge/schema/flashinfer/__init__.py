"""Definitions, workloads and solutions in the JSON of the FlashInfer Trace schema."""
