"""
op_type: other
policy: anything-faster
about: One step of beam search, which gives the new scores, and the histories with the new tokens at their ends.
"""

import torch

finite = True


class Model(torch.nn.Module):
    def forward(self, logits, scores, histories):
        batch, beams, words = logits.shape
        total = (torch.log_softmax(logits, -1) + scores[..., None]).flatten(1)
        best, places = total.topk(beams, dim=1)
        parents, tokens = places // words, places % words
        old = histories.gather(1, parents[..., None].expand(-1, -1, histories.shape[2]))
        return best, torch.cat([old, tokens[..., None]], -1)


def get_inputs():
    return [torch.randn(16, 6, 4000), torch.randn(16, 6), torch.randint(0, 4000, (16, 6, 20))]


def get_init_inputs():
    return []
