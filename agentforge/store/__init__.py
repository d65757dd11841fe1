"""The database: runs, attempts, solutions, evaluations, events, outcomes."""
