"""
op_type: reduction
policy: anything-faster
about: The clipped objective of PPO with a clipped value loss and an entropy bonus. The losses come in a dictionary.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, batch, clip=0.2):
        log_probs = batch["logits"].log_softmax(-1)
        chosen = log_probs.gather(-1, batch["actions"][..., None])[..., 0]
        advantage = batch["advantages"]
        advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
        ratio = (chosen - batch["old"]).exp()
        policy = -torch.min(ratio * advantage, ratio.clamp(1 - clip, 1 + clip) * advantage).mean()
        change = (batch["values"] - batch["before"]).clamp(-clip, clip)
        plain = (batch["values"] - batch["returns"]).square()
        clipped = (batch["before"] + change - batch["returns"]).square()
        value = 0.5 * torch.max(plain, clipped).mean()
        entropy = -(log_probs.exp() * log_probs).sum(-1).mean()
        return {"policy": policy, "value": value, "entropy": entropy, "total": policy + 0.5 * value - 0.01 * entropy}


def get_inputs():
    n = 16384
    batch = {name: torch.randn(n) for name in ("advantages", "values", "before", "returns")}
    batch |= {"logits": torch.randn(n, 18), "actions": torch.randint(0, 18, (n,)), "old": -3 + 0.3 * torch.randn(n)}
    return [batch, 0.2]


def get_init_inputs():
    return []
