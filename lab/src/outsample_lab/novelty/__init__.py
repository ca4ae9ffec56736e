"""Strange rows among normal ones, beside other detectors, on sets of every kind."""
