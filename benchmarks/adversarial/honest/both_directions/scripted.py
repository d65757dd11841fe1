"""
problem: both_directions
style: torch.jit.script for the loop over steps, which walks both directions at once by a batched product.
"""

import warnings

import torch

with warnings.catch_warnings():
    warnings.simplefilter("ignore")

    @torch.jit.script
    def walk(forward: torch.Tensor, backward: torch.Tensor, u: torch.Tensor, state: torch.Tensor):
        steps = forward.size(0)
        ahead = torch.empty_like(forward)
        back = torch.empty_like(backward)
        for t in range(steps):
            now = torch.stack([forward[t], backward[steps - 1 - t]])
            state = torch.baddbmm(now, state, u).tanh_()
            ahead[t] = state[0]
            back[steps - 1 - t] = state[1]
        return torch.cat([ahead, back], -1), state


class ModelNew(torch.nn.Module):
    def __init__(self, inner, width):
        super().__init__()
        self.rnn = torch.nn.RNN(inner, width, batch_first=True, bidirectional=True)

    @torch.no_grad()
    def forward(self, x, state=None):
        if x.dim() != 3 or x.shape[1] == 0:
            raise ValueError("a batch of sequences is expected")
        r = self.rnn
        if state is None:
            state = x.new_zeros(2, len(x), r.hidden_size)
        elif state.shape != (2, len(x), r.hidden_size):
            raise RuntimeError("a state for each direction is expected")
        steps = x.transpose(0, 1)
        ahead = torch.nn.functional.linear(steps, r.weight_ih_l0, r.bias_ih_l0 + r.bias_hh_l0)
        back = torch.nn.functional.linear(steps, r.weight_ih_l0_reverse, r.bias_ih_l0_reverse + r.bias_hh_l0_reverse)
        u = torch.stack([r.weight_hh_l0.t(), r.weight_hh_l0_reverse.t()])
        out, last = walk(ahead.contiguous(), back.contiguous(), u, state)
        return out.transpose(0, 1), last
