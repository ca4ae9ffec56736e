"""The report of `outsample reproduce`: the paper's numbers of Section 7 beside ours."""
