"""
problem: gru
style: All steps' inputs in one product, weights read in forward, gates in place.
"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, inner, hidden):
        super().__init__()
        self.gru = torch.nn.GRU(inner, hidden, batch_first=True)

    @torch.no_grad()
    def forward(self, x, h):
        g = self.gru
        batch, steps, _ = x.shape
        hidden = g.hidden_size
        if h.shape != (1, batch, hidden) or steps == 0:
            raise ValueError("a state for each sequence, and at least one step")
        given = torch.addmm(g.bias_ih_l0, x.transpose(0, 1).reshape(steps * batch, -1), g.weight_ih_l0.t())
        given = given.view(steps, batch, 3 * hidden)
        given[..., : 2 * hidden] += g.bias_hh_l0[: 2 * hidden]
        weight, bias = g.weight_hh_l0.t(), g.bias_hh_l0[2 * hidden :]
        out, state = torch.empty(steps, batch, hidden), h[0]
        product = torch.empty(batch, 3 * hidden)
        for t in range(steps):
            torch.mm(state, weight, out=product)
            gates = product[:, : 2 * hidden].add_(given[t, :, : 2 * hidden]).sigmoid_()
            reset, update = gates[:, :hidden], gates[:, hidden:]
            new = product[:, 2 * hidden :].add_(bias).mul_(reset).add_(given[t, :, 2 * hidden :]).tanh_()
            torch.addcmul(new, update, state - new, out=out[t])
            state = out[t]
        return out.transpose(0, 1), state.clone()[None]
