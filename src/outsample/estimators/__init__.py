"""The scikit-learn estimators, one a file."""
