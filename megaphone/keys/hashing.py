"""From a key to its bin: as native operators on rows have it, so that a bin is the same bin for both."""

from __future__ import annotations

from dataflow.state.binning import Binning, OwnBins, bin_of, checked_bins, mix, shift_of, spread_over

__all__ = ["Binning", "OwnBins", "bin_of", "checked_bins", "mix", "shift_of", "spread_over"]
