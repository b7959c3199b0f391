from hopbench.eval.data_check.check import Checked, check_data
from hopbench.eval.data_check.findings import Finding

__all__ = ["Checked", "Finding", "check_data"]
