"""
problem: ctc
style: The forward variables of all sequences together, one step in time after the other. What lies behind a target's length is never read.
"""

import torch

NEVER = -torch.inf


class ModelNew(torch.nn.Module):
    def forward(self, logits, targets, input_lengths, target_lengths):
        log_probs = torch.log_softmax(logits, dim=-1)
        steps, batch, labels = log_probs.shape
        states = targets.new_zeros(batch, 2 * targets.shape[1] + 1)
        states[:, 1::2] = targets.clamp(0, labels - 1)
        emitted = log_probs.gather(2, states.expand(steps, -1, -1))
        jumps = torch.zeros(states.shape, dtype=torch.bool)
        jumps[:, 2:] = states[:, 2:] != states[:, :-2]
        alpha = log_probs.new_full((batch, states.shape[1] + 2), NEVER)
        alpha[:, 2:4] = emitted[0, :, :2]
        inside = torch.arange(steps)[:, None, None] < input_lengths[None, :, None]
        for t in range(1, steps):
            jumped = alpha[:, :-2].masked_fill(~jumps, NEVER)
            ways = torch.stack([alpha[:, 2:], alpha[:, 1:-1], jumped])
            step = torch.logsumexp(ways, 0) + emitted[t]
            alpha[:, 2:] = torch.where(inside[t], step, alpha[:, 2:])
        last = 2 * target_lengths[:, None] + 2
        ends = alpha.gather(1, torch.cat([last, last - 1], 1))
        none = torch.where(target_lengths == 0, 0.0, torch.inf).to(alpha.dtype)
        return torch.where(input_lengths == 0, none, -torch.logsumexp(ends, 1))
