"""
op_type: scan
policy: anything-faster
about: Generalised advantage estimation of episodes that end at different steps, and the returns.
"""

import torch


class Model(torch.nn.Module):
    def __init__(self, gamma, decay):
        super().__init__()
        self.gamma, self.decay = gamma, decay

    def forward(self, rewards, values, last, dones):
        goes_on = 1 - dones.float()
        advantages = torch.empty_like(rewards)
        following, advantage = last, torch.zeros_like(last)
        for t in reversed(range(rewards.shape[0])):
            delta = rewards[t] + self.gamma * following * goes_on[t] - values[t]
            advantage = delta + self.gamma * self.decay * goes_on[t] * advantage
            advantages[t] = advantage
            following = values[t]
        return advantages, advantages + values


def get_inputs():
    return [torch.randn(128, 512), torch.randn(128, 512), torch.randn(512), torch.rand(128, 512) < 0.05]


def get_init_inputs():
    return [0.99, 0.95]
