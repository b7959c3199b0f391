"""Our loggers' records in the log of the flow run under way.

Prefect sends the records of its own run loggers to the server, and those of other loggers only where a handler of its
own is attached to them.
"""

from __future__ import annotations

import logging

LOGGER = "hopbench"


def log_to_runs() -> None:
    """Attach a handler to the logger `hopbench` that sends what is logged within a flow run to its log; once."""
    from prefect.context import FlowRunContext, TaskRunContext
    from prefect.logging.handlers import APILogHandler

    class RunLogHandler(APILogHandler):
        def emit(self, record: logging.LogRecord) -> None:
            if FlowRunContext.get() or TaskRunContext.get():
                super().emit(record)

    log = logging.getLogger(LOGGER)
    if not any(type(handler).__name__ == RunLogHandler.__name__ for handler in log.handlers):
        log.addHandler(RunLogHandler())
        logging.getLogger("bm25s").propagate = False  # it sets its own level to DEBUG, and Prefect's console shows that
        if log.level == logging.NOTSET:
            log.setLevel(logging.INFO)
