"""The web page over the same data."""
