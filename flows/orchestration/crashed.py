"""Flow runs whose process was killed stay "Running" for ever: the next start marks them as crashed, and says why."""

from __future__ import annotations

from hopbench.flows.orchestration.processes import PREFIX, is_gone

MOST = 200


def mark_crashed() -> list[str]:
    """Mark the running flow runs of HopBench whose process on this host is gone; returns their names."""
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.filters import (
        FlowRunFilter,
        FlowRunFilterState,
        FlowRunFilterStateType,
        FlowRunFilterTags,
    )
    from prefect.client.schemas.objects import StateType
    from prefect.states import Crashed

    under_way = FlowRunFilterStateType(any_=[StateType.RUNNING, StateType.PENDING, StateType.CANCELLING])
    wanted = FlowRunFilter(tags=FlowRunFilterTags(all_=["hopbench"]), state=FlowRunFilterState(type=under_way))
    marked = []
    with get_client(sync_client=True) as client:
        for run in client.read_flow_runs(flow_run_filter=wanted, limit=MOST):
            owners = [tag for tag in run.tags if tag.startswith(f"{PREFIX}:")]
            if owners and all(map(is_gone, owners)):
                pid = owners[0].split(":")[-2]
                reason = f"process {pid} ended without a word (killed, or the machine stopped); found at a later start"
                client.set_flow_run_state(run.id, Crashed(message=reason), force=True)
                marked.append(run.name)
    return marked
