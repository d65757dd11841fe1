"""Contract suites for every Protocol, for implementations here and elsewhere."""
