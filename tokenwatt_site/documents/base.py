"""What every document model shares: frozen, strict, no unknown keys, numbers as written."""

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field


class Strict(BaseModel):
    """A frozen model that refuses unknown keys, wrong types, NaN and infinity."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        allow_inf_nan=False,
        use_attribute_docstrings=True,
        protected_namespaces=(),
    )


def whole(value: Any) -> Any:
    """2.0 is an integer in JSON Schema, so it is one here."""
    return int(value) if type(value) is float and value.is_integer() else value


Int = Annotated[int, BeforeValidator(whole)]

# int stays int and float stays float, so that a document round-trips as it was written.
Number = int | Annotated[float, Field(allow_inf_nan=False)]
Positive = Annotated[int, Field(gt=0)] | Annotated[float, Field(gt=0, allow_inf_nan=False)]
NonNegative = Annotated[int, Field(ge=0)] | Annotated[float, Field(ge=0, allow_inf_nan=False)]
Percent = (
    Annotated[int, Field(ge=0, le=100)] | Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)]
)
Count = Annotated[int, Field(ge=0), BeforeValidator(whole)]
PositiveInt = Annotated[int, Field(gt=0), BeforeValidator(whole)]
Slug = Annotated[str, Field(pattern=r"^[a-z0-9]+([.-][a-z0-9]+)*$", max_length=100)]
Date = Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$")]
Stamp = Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?Z$")]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


def key(default: Any = ..., *, phase: str, since: str = "") -> Any:
    """Return a spec field: its default, the phase that reads it or, if none does yet, from when on.

    Args:
        default: the value of a spec that doesn't name the key; ``...`` makes it required.
        phase: the phase of a measurement that reads the key.
        since: names the capability that will read it; empty when the key is read today.
    """
    extra: dict[str, Any] = {"phase": phase}
    if since:
        extra["since"] = since
    return Field(default, json_schema_extra=extra)
