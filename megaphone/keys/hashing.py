"""From a key to its bin: as native operators on rows have it, so that a bin is the same bin for both."""

from __future__ import annotations

from dataflow.state.binning import Binning, bin_of, mix, shift_of

__all__ = ["Binning", "bin_of", "mix", "shift_of"]
