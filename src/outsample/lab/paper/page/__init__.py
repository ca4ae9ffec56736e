"""The report of `outsample reproduce`: the paper's numbers of Section 7 beside ours."""

from outsample.lab.paper.page.report_page import write_report

__all__ = ["write_report"]
