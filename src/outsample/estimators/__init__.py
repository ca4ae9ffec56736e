"""The scikit-learn estimators, one per file, and what they share."""
