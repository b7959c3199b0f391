"""What all parts of a sweep file have in common."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """A part of a sweep file: its fields and no others."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
