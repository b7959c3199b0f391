from hopbench.eval.report.data import ReportData
from hopbench.eval.report.folder import read_run, write_details, write_run
from hopbench.eval.report.render import render_page, write_report

__all__ = ["ReportData", "read_run", "render_page", "write_details", "write_report", "write_run"]
