"""Laws of the estimators: `subjects` (estimators), `claims` (laws), `arrays` (generated data)."""
