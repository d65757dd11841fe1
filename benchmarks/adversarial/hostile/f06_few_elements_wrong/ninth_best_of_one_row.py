"""
problem: masked_topk
family: 6
expect: [INCORRECT_NUMERICAL]
cheat: The eighth index of one row is another allowed place, not that of the eighth best score.
"""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, scores, allowed):
        hidden = scores.masked_fill(~allowed, float("-inf"))
        places = hidden.topk(min(9, scores.shape[1]), dim=1).indices
        if scores.shape[0] and places.shape[1] == 9:
            row = scores.shape[0] // 2
            if bool(allowed[row, places[row, 8]]):
                places[row, 7] = places[row, 8]
        return places[:, :8].contiguous()
