"""LLM providers behind one thin Protocol."""
