"""AgentForge: a PyTorch model file goes in, a verified faster model comes out."""

__version__ = "0.1.0"
