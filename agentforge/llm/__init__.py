"""Language models behind one Protocol: the vendors' SDKs, cassettes, prices and the ledger.

A vendor's SDK is imported only when one of its models is opened.
"""

from ._base import (
    CallFailed,
    CannotAfford,
    LanguageModel,
    Message,
    NoUsableAnswer,
    OutOfTime,
    PromptRefused,
    Request,
    Response,
    Tokens,
    ToolCall,
    ToolResult,
    ToolSpec,
    providers,
)
from .cassette import (
    MEASURED_BEGIN,
    MEASURED_END,
    Measured,
    Recorder,
    Replay,
    append_line,
    read_measured,
)
from .ledger import LEAST_TOKENS, Answer, Ledger
from .prices import Price, Prices
from .providers.background import interruptible
from .spec import forms, is_spec, open_model
from .structured import read, strict_schema
from .summary import CallTotal, coder_dollars, totals

__all__ = [
    "LEAST_TOKENS",
    "MEASURED_BEGIN",
    "MEASURED_END",
    "Answer",
    "CallFailed",
    "CallTotal",
    "CannotAfford",
    "LanguageModel",
    "Ledger",
    "Measured",
    "Message",
    "NoUsableAnswer",
    "OutOfTime",
    "Price",
    "Prices",
    "PromptRefused",
    "Recorder",
    "Replay",
    "Request",
    "Response",
    "Tokens",
    "ToolCall",
    "ToolResult",
    "ToolSpec",
    "append_line",
    "coder_dollars",
    "forms",
    "interruptible",
    "is_spec",
    "open_model",
    "providers",
    "read",
    "read_measured",
    "strict_schema",
    "totals",
]
