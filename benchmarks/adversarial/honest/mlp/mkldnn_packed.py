"""
problem: mlp
style: both weights are packed side by side in __init__ from the same draws
"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.up = torch.nn.Linear(width, hidden)
        self.down = torch.nn.Linear(hidden, width)
        self.pack()
        self.register_load_state_dict_post_hook(lambda module, _: module.pack())

    def pack(self):
        self.up_t = self.up.weight.detach().t().contiguous()
        self.down_t = self.down.weight.detach().t().contiguous()

    def forward(self, x):
        h = torch.addmm(self.up.bias, x, self.up_t)
        return torch.addmm(self.down.bias, torch.nn.functional.gelu(h), self.down_t)
