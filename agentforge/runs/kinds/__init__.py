"""The kinds of run: what each begins with, and its phases."""
