from hopbench.eval.data_check.check import Checked, check_data

__all__ = ["Checked", "check_data"]
