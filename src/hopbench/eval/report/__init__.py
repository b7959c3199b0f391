from hopbench.eval.report._render import render_page, write_report
from hopbench.eval.report.data import ReportData
from hopbench.eval.report.folder import read_run, write_details, write_run

__all__ = ["ReportData", "read_run", "render_page", "write_details", "write_report", "write_run"]
