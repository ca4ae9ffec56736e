"""The experiments of Section 7 of the paper."""
