"""What tests read of flow runs: every published file, and what the server shows of a run."""

from pathlib import Path


def contents(folder):
    """Every published file, by name, but for the record of how the run was made, which no two runs share."""
    files = (path for path in Path(folder).rglob("*") if path.is_file() and path.name != "provenance.json")
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def artifacts_of(client, state):
    """Artifacts of a flow run by their keys."""
    return {found.key: found for found in client.read_artifacts() if found.flow_run_id == state.state_details.flow_run_id}


def task_runs(client, state):
    """The task runs of a flow run's state in the order of their start; the server records them a moment later."""
    from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterId

    from tests.flows.conftest import SHOWN_SECONDS, wait_for

    chosen = FlowRunFilter(id=FlowRunFilterId(any_=[state.state_details.flow_run_id]))

    def recorded():
        found = client.read_task_runs(flow_run_filter=chosen)
        return found and all(task_run.state is not None and task_run.state.is_final() for task_run in found) and found

    return sorted(wait_for(recorded, SHOWN_SECONDS), key=lambda task_run: task_run.start_time)


def stages_of(client, state):
    """Names of the tasks of a flow run, in their order."""
    return [task_run.name.rsplit("-", 1)[0] for task_run in task_runs(client, state)]
