"""The JSON schemas of the answers, in which an infinity or NaN is a string."""

from __future__ import annotations

from typing import Any

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core.core_schema import FloatSchema

from .answers import ANSWERS


class _AnswerSchema(GenerateJsonSchema):
    """Floats as `views.output.plain` writes them."""

    def float_schema(self, schema: FloatSchema) -> JsonSchemaValue:
        number = super().float_schema(schema)
        if not schema.get("allow_inf_nan", True):
            return number
        return {"anyOf": [number, {"enum": ["inf", "-inf", "nan"], "type": "string"}]}


def answer_schema(command: str) -> dict[str, Any]:
    """The JSON schema of a command's answer, by its key in `ANSWERS`."""
    return ANSWERS[command].model_json_schema(mode="serialization", schema_generator=_AnswerSchema)
