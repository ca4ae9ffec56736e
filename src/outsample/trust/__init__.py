"""How far to trust a place: error bars, bounds, planes, abnormality, conformal p-values."""
