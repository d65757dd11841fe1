"""
problem: both_directions
style: One product for all steps of a direction, then each state is written to its place by out= and tanh in place. The layer only holds weights.
"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, inner, width):
        super().__init__()
        self.rnn = torch.nn.RNN(inner, width, batch_first=True, bidirectional=True)

    @torch.no_grad()
    def forward(self, x, state=None):
        if x.dim() != 3 or x.shape[1] == 0:
            raise ValueError("a batch of sequences is expected")
        batch, steps, _ = x.shape
        width = self.rnn.hidden_size
        if state is not None and state.shape != (2, batch, width):
            raise RuntimeError("a state for each direction is expected")
        last = x.new_empty(2, batch, width)
        both = []
        for way, end in enumerate(("", "_reverse")):
            w, u, b, c = (getattr(self.rnn, f"{name}_l0{end}") for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"))
            out = torch.addmm(b + c, x.transpose(0, 1).reshape(steps * batch, -1), w.t()).view(steps, batch, width)
            before = x.new_zeros(batch, width) if state is None else state[way]
            for t in reversed(range(steps)) if way else range(steps):
                torch.addmm(out[t], before, u.t(), out=out[t]).tanh_()
                before = out[t]
            last[way] = before
            both.append(out)
        return torch.cat(both, -1).transpose(0, 1), last
