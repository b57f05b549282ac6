"""What tests read of flow runs: every published file, and what the server shows of a run."""

from pathlib import Path


def contents(folder):
    """Every published file, by name."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in Path(folder).rglob("*") if path.is_file()}


def artifacts_of(client, state):
    """Artifacts of a flow run by their keys."""
    return {found.key: found for found in client.read_artifacts() if found.flow_run_id == state.state_details.flow_run_id}
