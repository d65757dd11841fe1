"""
problem: lstm_cell
style: One product for input and state. Both weights lie in one matrix, which is packed at the first call and again if a version changes.
"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, inner, hidden):
        super().__init__()
        self.cell = torch.nn.LSTMCell(inner, hidden)
        self._packed, self._key = None, None

    def _weights(self):
        parameters = list(self.cell.parameters())
        key = [(p.data_ptr(), p._version) for p in parameters]
        if key != self._key:
            w_x, w_h, b_x, b_h = (p.detach() for p in parameters)
            self._packed, self._key = (torch.cat([w_x, w_h], 1).t().contiguous(), b_x + b_h), key
        return self._packed

    def forward(self, x, h, c):
        weight, bias = self._weights()
        i, f, g, o = torch.addmm(bias, torch.cat([x, h], 1), weight).chunk(4, 1)
        new = torch.sigmoid(f).mul_(c).addcmul_(torch.sigmoid(i), torch.tanh(g))
        return torch.sigmoid(o).mul_(torch.tanh(new)), new
