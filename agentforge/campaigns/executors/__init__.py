"""Where the workers of a campaign run: processes on this machine, or actors of a Ray cluster."""
