"""Link to a finished run, logged in an MLflow run: URI, digest of the manifest, and summaries."""

from ...errors import LeafledgerError, NotThere
from ...models.mlflow import reported
from ...stores import storage
from ..records.current_run import is_current
from ..records.folder import MANIFEST, SUMMARY, RunFolder, name_file
from ..records.manifest import Manifest

TAGS = {"run": "leafledger.run", "manifest": "leafledger.manifest"}
FOLDER = "leafledger"  # folder of artifacts
ACTIVE = "active"  # MLflow's state of a run that is not deleted


def _name(mlflow_run: str) -> str:
    return f"runs:/{mlflow_run}"


def find_run(mlflow_run: str) -> None:
    """Refuse an MLflow run that is missing or deleted, before anything is explained.

    Parameters
    ----------
    mlflow_run : str
        Its id.

    Raises
    ------
    UsageError
        MLflow is not installed, or nobody said where its server is.
    """
    with reported("find", _name(mlflow_run)):
        from mlflow import MlflowClient

        found = MlflowClient().get_run(mlflow_run).info.lifecycle_stage
        if found != ACTIVE:
            raise NotThere(f"{_name(mlflow_run)}: is {found} in MLflow, expected a run that can be linked to; restore it, or choose another")


def _log(mlflow_run: str, out: str, manifest: Manifest) -> None:
    with storage.scratch() as folder, reported("log to", _name(mlflow_run)):
        from mlflow import MlflowClient

        client, run = MlflowClient(), RunFolder(out)
        summaries = {f"{SUMMARY}/{name_file(entry['uri'])}": run.listed(entry) for entry in manifest.summaries}
        for key, uri in ({MANIFEST: run.manifest} | summaries).items():
            local = folder / key.rpartition("/")[2]
            storage.download(uri, local)
            client.log_artifact(mlflow_run, str(local), "/".join((FOLDER, *key.split("/")[:-1])))
        client.set_tag(mlflow_run, TAGS["run"], out)
        client.set_tag(mlflow_run, TAGS["manifest"], manifest.sha256)


def log_run(mlflow_run: str | None, out: str, manifest: Manifest) -> str | None:
    """Log a link to a finished run if requested. The run stays published if logging fails, and can be logged again.

    Parameters
    ----------
    mlflow_run : str or None
        Id of MLflow's run; None where nothing is to be logged.
    out : str
        URI of the finished run's folder.

    Returns
    -------
    str or None
        Why it could not be logged; None where it was, or was not asked for.
    """
    if mlflow_run is None:
        return None
    try:
        if not is_current(out, manifest):
            return f"{out}: was replaced or removed meanwhile; MLflow has no link to it"
        _log(mlflow_run, out, manifest)
    except LeafledgerError as error:
        return f"{out}: is published, but MLflow has no link to it; run the same again to log it: {error}"
    return None
