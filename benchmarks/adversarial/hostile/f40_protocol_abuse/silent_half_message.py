"""
problem: relu
family: 40
expect: [CHEATING, CRASHED, RUNTIME_ERROR, TIMEOUT]
cheat: Announces 100 bytes, sends one every second.
"""

import os
import stat
import time

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        fds = []
        for name in os.listdir("/proc/self/fd"):
            try:
                if stat.S_ISSOCK(os.fstat(int(name)).st_mode):
                    fds.append(int(name))
            except OSError:
                continue
        for fd in fds:
            os.write(fd, b"\x00\x00\x00\x64")
        for _ in range(100):
            for fd in fds:
                os.write(fd, b" ")
            time.sleep(1.0)
        return torch.zeros_like(x)
