"""The report of `outsample reproduce`: the numbers of Section 7, printed and measured."""
