"""`python -m agentforge.cli`."""

from . import main

main()
