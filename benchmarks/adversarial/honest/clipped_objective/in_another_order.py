"""
problem: clipped_objective
style: Only the chosen logit is normalised, and torch.var_mean standardises. The dictionary has its keys in another order.
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, batch, clip=0.2):
        logits = batch["logits"]
        whole = logits.log_softmax(-1)
        chosen = torch.gather(whole, -1, batch["actions"].unsqueeze(-1)).squeeze(-1)
        entropy = torch.linalg.vecdot(whole.exp(), whole).mean().neg_()
        deviation, mean = torch.std_mean(batch["advantages"])
        advantage = (batch["advantages"] - mean).div_(deviation + 1e-8)
        ratio = torch.exp(chosen - batch["old"])
        bounded = torch.clamp(ratio, 1 - clip, 1 + clip).mul_(advantage)
        policy = -torch.minimum(ratio.mul_(advantage), bounded).mean()
        change = torch.sub(batch["values"], batch["before"]).clamp_(-clip, clip)
        clipped = change.add_(batch["before"]).sub_(batch["returns"]).square_()
        plain = torch.sub(batch["values"], batch["returns"]).square_()
        value = torch.maximum(plain, clipped).mean() / 2
        total = policy + value / 2 - entropy / 100
        return {"total": total, "entropy": entropy, "value": value, "policy": policy}
