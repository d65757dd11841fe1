"""Strategies and what happened when they were tried."""
