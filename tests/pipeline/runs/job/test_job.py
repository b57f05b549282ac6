"""A job is complete and checked before any data are looked at: places absolute and dated, parameters filled in, defaults of the machine."""

import re
from datetime import date

import pytest

from leafledger.kernels.methods import METHODS
from leafledger.pipeline.cluster.placement import make_placement
from leafledger.pipeline.errors import UsageError
from leafledger.pipeline.methods.parameters import check_parameters, find_method
from leafledger.pipeline.runs.job.job import make_job
from leafledger.pipeline.runs.job.options import Options


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """Relative places are taken from here."""
    monkeypatch.chdir(tmp_path)
    return str(tmp_path)


def made(model="model.txt", data="data", out="out/run", **options):
    return make_job(model, data, out, Options(**options))


def test_places_are_absolute(here):
    """Wherever workers are; tables lie beside the run unless they are given a place."""
    found = made(background="rows", partition="groups.json")
    assert (found.model, found.data, found.out) == (f"{here}/model.txt", f"{here}/data", f"{here}/out/run")
    assert (found.options.background, found.options.partition, found.tables) == (f"{here}/rows", f"{here}/groups.json", f"{here}/out/_leafledger")
    assert made(background="rows", tables="kept").tables == f"{here}/kept"
    assert made(background="model").options.background == "model"
    groups = {"a": ["x", "y"]}
    assert made(partition=groups).options.partition == groups


def test_dates_are_filled_into_every_place(here):
    """In any form that dates have."""
    night = date(2026, 11, 2)
    found = made("m-{date}", "d/{date:%Y}/{date:%m}", "o/{date}", date=night, background="b-{date:%d}", tables="t-{date}", latest="l-{date:%Y}")
    assert (found.model, found.data, found.out) == (f"{here}/m-2026-11-02", f"{here}/d/2026/11", f"{here}/o/2026-11-02")
    assert (found.options.background, found.tables, found.options.latest) == (f"{here}/b-02", f"{here}/t-2026-11-02", f"{here}/l-2026")
    told = made(out="o/{date}", date=night, lineage="{date-1d}.ndjson", partition="p-{date}", reasons="r-{date:%m}").options
    assert told.lineage == "2026-11-01.ndjson"
    assert (told.partition, told.reasons) == (f"{here}/p-2026-11-02", f"{here}/r-11")


def test_metrics_have_one_file_for_all_nights(here):
    """Or node_exporter would serve the same series as often as there were nights, which Prometheus refuses."""
    with pytest.raises(UsageError, match=r"metrics_file is 'x-\{date\}\.prom', expected the same file every night"):
        made(out="o/{date}", date=date(2026, 11, 2), metrics_file="x-{date}.prom")


def test_parameters_are_filled_in_and_sorted():
    """Whatever order they are given in, so that the same job is the same plan; texts are read."""
    beta = {parameter.name: parameter.default for parameter in find_method("beta").parameters}
    assert dict(made(method="beta").parameters) == beta
    for given in ({"alpha": "4", "beta": 2}, {"beta": "2", "alpha": 4.0}):
        assert made(method="beta", parameters=given).parameters == (("alpha", 4.0), ("beta", 2.0))
    assert made().parameters == ()


@pytest.mark.parametrize("name", METHODS)
def test_a_parameter_that_no_method_has_is_refused(name):
    """With those that it takes."""
    takes = ", ".join(parameter.name for parameter in METHODS[name].parameters) or "none"
    with pytest.raises(UsageError, match=f"^method '{name}' has no parameter 'nothing', it takes {takes}$"):
        check_parameters(METHODS[name], {"nothing": 1})


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"ids": ["a"], "global_only": True}, "^ids are a, but with global_only no rows are written"),
        ({"latest_requires": 0.9}, "^latest_requires is 0.9, which is asked for latest to move, but no latest was given$"),
        ({"tables": "kept", "background": "model"}, "^kept: tables are kept for backgrounds of rows, but none was given$"),
        ({"tables": "kept"}, "^kept: tables are kept for backgrounds of rows, but none was given$"),
        ({"method": "lime"}, "^method 'lime' is unknown, expected one of shapley, banzhaf"),
        ({"method": "semivalue", "parameters": {"density": lambda t: t}}, "^parameter 'density' is a function, which cannot be written into a plan"),
        ({"data": "d-{date}"}, r"^d-\{date\}: has a \{date\} to fill in, but no date was given; give --date YYYY-MM-DD, today or yesterday$"),
        ({"data": "{night}", "date": "2026-11-02"}, r"only \{date\}, a day around it such as \{date-1d\}, or a form of these"),
        (
            {"latest": "latest.json"},
            "^latest.json: names the run of the latest date, but no date was given; give --date YYYY-MM-DD, today or yesterday$",
        ),
        ({"latest": "out/run/latest.json", "date": "2026-11-02"}, "lies within the run, but runs of other dates are to move it"),
        ({"data": "out"}, "out/run: lies within the data, whose next run would read it"),
        ({"data": "out/run"}, "out/run: lies within the data"),
        ({"background": "out"}, "out/run: lies within the background"),
        ({"scheduler": "tcp://10.0.0.1:8786"}, "is another host without TLS"),
        ({"scheduler": "tcp://localhost.example.com:8786"}, "is another host without TLS"),
        ({"scheduler": "tcp://"}, "is another host without TLS"),
    ],
)
def test_what_does_not_go_together_is_refused(given, says):
    """While the job is made."""
    with pytest.raises(UsageError, match=says):
        made(**given)


@pytest.mark.parametrize(
    "address",
    [
        *("tcp://localhost:1", "tcp://127.0.0.1:1", "tcp://127.1.2.3:1", "tcp://[::1]:1", "localhost:1", "ws://127.0.0.1:1"),
        *("tls://10.0.0.1:1", "wss://10.0.0.1:1", "serial", None),
    ],
)
def test_this_host_and_tls_need_no_leave(address):
    """Nobody listens in between; another host may be reached without it by who says that the network is theirs."""
    assert made(scheduler=address).options.scheduler == address
    assert made(scheduler="tcp://10.0.0.1:1", plain_tcp=True).options.scheduler == "tcp://10.0.0.1:1"


@pytest.mark.parametrize(
    "address", ["tcp://10.0.0.1:1", "10.0.0.1:1", "host:8786", "host", "ws://10.0.0.1:1", "ucx://10.0.0.1:1", "TCP://10.0.0.1:1", ""]
)
def test_another_host_needs_tls_or_leave(address):
    """Whatever stands before the host's name, or does not."""
    with pytest.raises(UsageError, match=f"^{address}: is another host without TLS; use tls://|^scheduler is ''"):
        made(scheduler=address)


def test_a_place_that_is_called_like_the_data_is_not_within_it(here):
    """Names begin alike, folders do not."""
    assert made(data="data", out="data-explained").out == f"{here}/data-explained"


def test_parameters_that_cannot_be_read_are_shown_short():
    """A value may be as long as a file."""
    with pytest.raises(UsageError) as raised:
        check_parameters(METHODS["banzhaf"], {"p": "x" * 10_000})
    assert str(raised.value).startswith("parameter 'p' is 'xxx")
    assert len(str(raised.value)) < 200


@pytest.mark.parametrize("scheduler", ["serial", "tls://host:8786"])
def test_workers_are_of_a_local_cluster(scheduler):
    """Beside a scheduler, which has its own, they would be passed over."""
    said = rf"^workers is 4, which is for this machine, but scheduler is '{scheduler}'; leave out one or the other$"
    with pytest.raises(UsageError, match=said):
        made(scheduler=scheduler, workers=4)
    with pytest.raises(UsageError, match=said):
        make_placement(scheduler, None, 4)
    assert made(workers=4).placement.asked_workers == 4


@pytest.mark.parametrize("address", ["tcp://[::1:8786", "[::1", "tls://[host]:8786", "tcp://127.0.0.1:port", "127.0.0.1:99999"])
@pytest.mark.parametrize("plain_tcp", [False, True])
def test_a_scheduler_s_address_is_one(address, plain_tcp):
    """Anything else is refused in one line, before anybody is asked."""
    with pytest.raises(UsageError, match=rf"^scheduler is '{re.escape(address)}', expected an address as tls://host:8786; got: [^\n]+$"):
        make_placement(address, plain_tcp=plain_tcp)
