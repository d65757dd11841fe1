"""Language models behind one thin Protocol: the vendors' SDKs, cassettes, prices and the ledger.

Nothing here imports a vendor's SDK before a model of that vendor is opened.
"""

from ._background import interruptible
from ._base import (
    CallFailed,
    CannotAfford,
    LanguageModel,
    Message,
    Request,
    Response,
    Tokens,
    providers,
)
from ._spec import FORMS, is_spec, open_model
from .cassette import Recorder, Replay
from .ledger import Answer, Ledger
from .prices import Price, Prices
from .structured import read, strict_schema
from .summary import CallTotal, totals

__all__ = [
    "FORMS",
    "Answer",
    "CallFailed",
    "CallTotal",
    "CannotAfford",
    "LanguageModel",
    "Ledger",
    "Message",
    "Price",
    "Prices",
    "Recorder",
    "Replay",
    "Request",
    "Response",
    "Tokens",
    "interruptible",
    "is_spec",
    "open_model",
    "providers",
    "read",
    "strict_schema",
    "totals",
]
