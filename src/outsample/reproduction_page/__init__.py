"""The report of `outsample reproduce`: the paper's numbers of Section 7 beside ours."""

from outsample.reproduction_page.page import write_report

__all__ = ["write_report"]
