"""
problem: sensor_covariance
style: One real product of the real parts above the imaginary parts, as an operator of torch.library, from which both parts of the answer are read.
"""

import torch


@torch.library.custom_op("sensors::covariance", mutates_args=())
def covariance(signals: torch.Tensor) -> torch.Tensor:
    sensors = signals.shape[-2]
    parts = torch.cat([signals.real, signals.imag], -2)
    g = torch.matmul(parts, parts.mT).div_(signals.shape[-1])
    real = g[..., :sensors, :sensors] + g[..., sensors:, sensors:]
    imag = g[..., sensors:, :sensors] - g[..., :sensors, sensors:]
    real = real.add(real.flip(-2, -1)).div_(2)
    imag = imag.sub(imag.flip(-2, -1)).div_(2)
    return torch.complex(real, imag)


@covariance.register_fake
def _(signals):
    return signals.new_empty((*signals.shape[:-1], signals.shape[-2]))


class ModelNew(torch.nn.Module):
    def forward(self, signals):
        if not signals.is_complex():
            raise TypeError("complex signals are expected")
        return covariance(signals)
