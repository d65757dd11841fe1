"""The providers of language models, and the base class for more of them. No SDK is imported here."""

from .endpoint import EndpointModel, Heard, estimated
from .failures import ArgumentRefused, Endpoint
from .packages import require

__all__ = ["ArgumentRefused", "Endpoint", "EndpointModel", "Heard", "estimated", "require"]
