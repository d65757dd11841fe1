"""Alembic's environment and the revisions, run by `agentforge.store` when a database is opened."""
