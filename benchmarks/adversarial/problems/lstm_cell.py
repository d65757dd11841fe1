"""
op_type: gemm_epilogue
policy: anything-faster
about: One step of an LSTM, with both states as outputs.
"""

import torch


class Model(torch.nn.Module):
    def __init__(self, inner, hidden):
        super().__init__()
        self.cell = torch.nn.LSTMCell(inner, hidden)
        torch.nn.init.orthogonal_(self.cell.weight_hh)
        torch.nn.init.zeros_(self.cell.bias_ih)
        torch.nn.init.zeros_(self.cell.bias_hh)
        with torch.no_grad():
            self.cell.bias_ih[hidden : 2 * hidden].fill_(1.0)

    def forward(self, x, h, c):
        return self.cell(x, (h, c))


def get_inputs():
    return [torch.randn(64, 256), torch.randn(64, 320), torch.randn(64, 320)]


def get_init_inputs():
    return [256, 320]
