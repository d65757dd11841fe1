"""The program of a child server: `python -m agentforge.isolation.child_main FD`."""

import socket
import sys

from agentforge.isolation.child_server import serve

if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
