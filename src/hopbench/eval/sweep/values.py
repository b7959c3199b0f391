"""The parts that a sweep file is made of: sections, values and ranges of numbers."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field, model_validator


class Section(BaseModel):
    """A part of a sweep file: its fields and no others."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


Scalar = bool | int | float | str
MOST_VALUES = 10_000
MOST = 10_000
"""Configurations of a sweep: more would take days, and minutes only to list."""
MOST_TRIALS = 100_000
LARGEST = 1e15


class Range(Section):
    """Values from `low` to `high`: every `step`-th one, or (random and Bayesian search) any of them."""

    low: int | float
    high: int | float
    step: int | float | None = Field(default=None, gt=0, description="distance of the values; needed by grid and ofat")
    log: bool = Field(default=False, description="small values are as likely as large ones: drawn by their logarithm")

    @model_validator(mode="after")
    def _ordered(self) -> Range:
        if not all(-LARGEST <= value <= LARGEST for value in (self.low, self.high)):  # NaN is not
            raise ValueError(f"low and high are numbers from {-LARGEST:g} to {LARGEST:g}")
        if self.low >= self.high:
            raise ValueError(f"low {self.low} is not below high {self.high}")
        if self.log and (self.low <= 0 or self.step is not None):
            raise ValueError("log: needs a low above 0, and no step")
        if self.step is not None and self.step > self.high - self.low:
            raise ValueError(f"step {self.step} is above high - low ({self.high} - {self.low}): choose a smaller one")
        if self.step is not None and (self.high - self.low) / self.step > MOST_VALUES:
            raise ValueError(f"step {self.step} makes over {MOST_VALUES:,} values: choose a larger one, or none")
        return self

    @property
    def whole(self) -> bool:
        """Whether its values are whole numbers."""
        return all(type(value) is int for value in (self.low, self.high, self.step) if value is not None)

    def real(self) -> Range:
        """The same range for a parameter of real numbers: without a step, 0 to 1 means all between, too."""
        return (
            self
            if self.step is not None
            else self.model_copy(update={"low": float(self.low), "high": float(self.high)})
        )

    def values(self) -> list[int | float]:
        """Every `step`-th value; none without a step."""
        if self.step is None:
            return []
        count = int((self.high - self.low) / self.step + 1e-9) + 1
        steps = [self.low + place * self.step for place in range(count)]
        return [value if self.whole else round(float(value), 9) for value in steps]

    def ends(self) -> tuple[int | float, int | float]:
        """The least and the greatest value: `low`, and `high` where the steps reach it."""
        return (self.low, self.values()[-1]) if self.step is not None else (self.low, self.high)
