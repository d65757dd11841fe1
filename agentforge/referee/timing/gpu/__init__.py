"""Timing on an NVIDIA GPU: events and clock, a cold L2, clocks read."""
