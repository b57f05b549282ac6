"""A component for kustomize that says how large workers are, and how many there may be, from what a run was forecast to take.

    leafledger plan MODEL DATA --out OUT --forecast --json > plan.json
    mkdir overlays/mine/sizes
    python sizes.py --hours 2 < plan.json > overlays/mine/sizes/kustomization.yaml

and in the overlay's own kustomization.yaml ``components: [sizes]``. It takes Python alone.
"""

import argparse
import json
import math
import sys

GIB = 1 << 30
ROOM = 1.5  # of what tasks need at most: Dask's workers pause at 80 % of their limit
BESIDE = 1  # GiB above Dask's limit, before Kubernetes ends the pod
COMPONENT = """\
# By infra/kubernetes/sizes.py: {n_rows:,} rows within {hours:g} h, {row:.3g} µs of a thread for each; {memory} MiB for a thread.
apiVersion: kustomize.config.k8s.io/v1alpha1
kind: Component
patches:
  - target: {{ kind: DaskAutoscaler, name: leafledger }}
    patch: |-
      - {{ op: replace, path: /spec/maximum, value: {workers} }}
  - target: {{ kind: DaskCluster, name: leafledger }}
    patch: |-
      - {{ op: replace, path: /spec/worker/spec/containers/0/resources/requests, value: {{ cpu: "{threads}", memory: {limit}Gi }} }}
      - {{ op: replace, path: /spec/worker/spec/containers/0/resources/limits, value: {{ memory: {most}Gi }} }}
      - {{ op: replace, path: /spec/worker/spec/containers/0/args/4, value: --nthreads={threads} }}
      - {{ op: replace, path: /spec/worker/spec/containers/0/args/5, value: --memory-limit={limit}GiB }}
"""


def size(plan: dict, hours: float, threads: int) -> str:
    """Size the workers for a run."""
    if not plan.get("forecast"):
        raise ValueError("no forecast there, expected the document of leafledger plan --forecast --json, of a run that is not finished")
    seconds = sum(plan["forecast"]["row"].values())
    needed = math.ceil(plan["n_rows"] * seconds / (hours * 3600))
    workers = max(1, math.ceil(min(needed, plan["n_items"]) / threads))
    limit = math.ceil(ROOM * threads * plan["memory"] / GIB)
    return COMPONENT.format(
        n_rows=plan["n_rows"], hours=hours, row=1e6 * seconds, memory=plan["memory"] >> 20, workers=workers, threads=threads, limit=limit,
        most=limit + BESIDE,
    )  # fmt: skip


def main() -> None:
    """Read a plan from standard input, and write the component."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hours", type=float, required=True, help="that explaining may take, once workers are there")
    parser.add_argument("--threads", type=int, default=2, help="of a worker, a core each")
    given = parser.parse_args()
    if not given.hours > 0 or given.threads < 1:
        parser.error("expected hours above 0, and at least one thread")
    try:
        sys.stdout.write(size(json.load(sys.stdin), given.hours, given.threads))
    except ValueError as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
