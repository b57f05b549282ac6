"""What lies below a folder is found, also behind links, and each folder once; one that cannot be listed is an error, whatever the store."""

import errno
import os
import re

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import s3fs

from leafledger.pipeline.errors import NotThere, StorageError
from leafledger.pipeline.stores.parquet_files import list_parquet
from tests.pipeline.stores.placing import put
from tests.pipeline.stores.remote import Listed
from tests.pipeline.stores.serving import served


def names(root, uri):
    return [found.uri.removeprefix(f"{root}/") for found in list_parquet(uri)]


@pytest.fixture(params=["", "listed://"], ids=["here", "elsewhere"])
def scheme(request):
    """Of this machine, or of a store that has links."""
    return request.param


def test_links_between_the_parts_of_a_glob_are_followed(tmp_path, scheme):
    """A month that lies on another disk is not left out without a word."""
    for name in ("data/month=1/a.parquet", "elsewhere/a.parquet", "elsewhere/deep/b.parquet", "data/month=3/a.parquet"):
        put(f"{tmp_path}/{name}")
    (tmp_path / "data" / "month=2").symlink_to(tmp_path / "elsewhere")
    months, root = [f"data/month={month}/a.parquet" for month in (1, 2, 3)], f"{scheme}{tmp_path}"
    assert names(root, f"{root}/data/month=*/*.parquet") == names(root, f"{root}/data/m*/a.parquet") == months
    for every in ("data", "data/*", "data/**/*.parquet", "data/**", "**/data/month=?"):
        assert names(root, f"{root}/{every}") == [*months[:2], "data/month=2/deep/b.parquet", months[2]]
    assert names(root, f"{root}/data/month=2/**/b.parquet") == ["data/month=2/deep/b.parquet"]


@pytest.mark.parametrize("pattern", ["data", "data/*", "data/month=*/a.parquet", "data/**/*.parquet", "data/**", "data/**/month=?"])
def test_a_link_that_is_gone_through_has_to_lead_somewhere(tmp_path, scheme, pattern):
    """What was to be found behind it would be missing without a word; a hidden one is nobody's business."""
    put(f"{tmp_path}/data/month=1/a.parquet")
    (tmp_path / "data" / "_old").symlink_to(tmp_path / "gone")
    assert names(f"{scheme}{tmp_path}", f"{scheme}{tmp_path}/{pattern}") == ["data/month=1/a.parquet"]
    (tmp_path / "data" / "month=2").symlink_to(tmp_path / "gone")
    with pytest.raises(StorageError, match=rf"{re.escape(pattern)}: cannot list: no such file or object$"):
        list_parquet(f"{scheme}{tmp_path}/{pattern}")


def test_what_has_just_that_name_is_meant_before_what_it_may_match(root):
    """``data[1]`` is a folder where there is one, and a glob where there is none."""
    for name in ("data[1]/a.parquet", "data1/b.parquet"):
        put(f"{root}/{name}")
    assert names(root, f"{root}/data[1]") == ["data[1]/a.parquet"]
    assert names(root, f"{root}/data[12]") == ["data1/b.parquet"]


def test_globs_pass_over_hidden_names_that_they_do_not_spell_out(root):
    """``*`` is not meant to find what others have hidden."""
    for name in ("data/month=1/a.parquet", "data/_old/b.parquet", "data/.tmp/c.parquet", "data/_d.parquet"):
        put(f"{root}/{name}")
    assert names(root, f"{root}/data/*") == ["data/month=1/a.parquet"]
    assert names(root, f"{root}/data/_o*") == ["data/_old/b.parquet"]
    assert names(root, f"{root}/*/_d*") == ["data/_d.parquet"]


@pytest.mark.parametrize("place", ["data", "data/**/*.parquet", "d*/**"])
def test_links_that_lead_nowhere_or_back_are_refused(tmp_path, place):
    """Neither skipped, as if there were nothing, nor followed for ever."""
    put(f"{tmp_path}/data/a.parquet")
    (tmp_path / "data" / "back").symlink_to(tmp_path / "data")
    with pytest.raises(StorageError, match=rf"{re.escape(place)}: cannot list: .*a link leads back to a folder that it is in: '.*/data/back'$"):
        list_parquet(f"{tmp_path}/{place}")
    (tmp_path / "data" / "back").unlink()
    (tmp_path / "data" / "b.parquet").symlink_to(tmp_path / "gone.parquet")
    with pytest.raises(StorageError, match=rf"{re.escape(place)}: cannot list: no such file or object$"):
        list_parquet(f"{tmp_path}/{place}")


GLOBS = ("*", "*/*", "**", "**/*", "**/*.parquet", "*/**/c.parquet", "**/**/c.p*", "*/deep", "m*/deep/*", "month=[12]/*", "month=[!1]/?.p[!a]*")
BELOW = ("a.parquet", "d.csv", "month=1/c.parquet", "month=2/c.parquet", "month=2/c.pq", "month=2/deep/c.parquet", "_old/c.parquet", "month=1/.c")


@pytest.mark.parametrize("pattern", GLOBS)
@pytest.mark.slow
def test_a_glob_finds_here_what_it_finds_elsewhere(tmp_path, bucket, pattern):
    """On this machine folders are looked into one by one, in a bucket some patterns take one list of all."""
    for root in (str(tmp_path), bucket):
        for name in BELOW:
            put(f"{root}/data/{name}")
    found = names(str(tmp_path), f"{tmp_path}/data/{pattern}")
    assert found == names(bucket, f"{bucket}/data/{pattern}")
    assert found


@pytest.mark.parametrize("place", ["data", "data/**", "data/**/*.parquet", "data/*/*"])
def test_a_folder_that_cannot_be_read_is_refused(tmp_path, monkeypatch, place):
    """Its rows would be missing without a word; hidden ones are nobody's business."""
    for name in ("data/month=1/b.parquet", "data/month=2/a.parquet", "data/_private/c.parquet"):
        put(f"{tmp_path}/{name}")
    looks = {each: getattr(os, each) for each in ("scandir", "listdir")}

    def refuse(path):
        raise PermissionError(13, "Permission denied", str(path))

    def forbid(ending):
        for each, look in looks.items():
            monkeypatch.setattr(os, each, lambda path, look=look: refuse(path) if str(path).endswith(ending) else look(path))

    forbid("_private")
    assert len(list_parquet(f"{tmp_path}/{place}")) == 2
    forbid("month=1")
    with pytest.raises(StorageError, match=rf"{re.escape(place)}: cannot list: .*Permission denied: '.*month=1'$"):
        list_parquet(f"{tmp_path}/{place}")


ERRORS = {
    "forbidden": PermissionError("Access Denied"),
    "too many": OSError(errno.EBUSY, "Slow Down"),
    "broken": OSError(errno.EREMOTEIO, "Internal"),
}
PLACES = (
    "data",
    "data/year=*",
    "data/*/*.parquet",
    "data/*/*/*.parquet",
    "data/year=*/month=*/*.parquet",
    "data/**/*.parquet",
    "d*/year=2013/month=1/*",
)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("error", ERRORS.values(), ids=ERRORS)
@pytest.mark.slow
def test_a_folder_of_a_bucket_that_cannot_be_listed_is_refused(bucket, monkeypatch, place, error):
    """Whether the store forbids it, is asked too often or is broken: fsspec passes over it, and its rows would be missing without a word."""
    for year in (2012, 2013):
        put(f"{bucket}/data/year={year}/a.parquet")
        for month in (1, 2):
            put(f"{bucket}/data/year={year}/month={month}/b.parquet")
    count, away, list_pages = len(list_parquet(f"{bucket}/{place}")), "data/year=2013/month=1/", s3fs.S3FileSystem._list_pages

    async def refuse(self, method, **given):
        if given["Prefix"] == away or (not given["Delimiter"] and away.startswith(given["Prefix"])):
            raise error
        async for page in list_pages(self, method, **given):
            yield page

    monkeypatch.setattr(s3fs.S3FileSystem, "_list_pages", refuse)
    if place == "data/*/*.parquet":  # it goes through no month
        assert len(list_parquet(f"{bucket}/{place}")) == count == 2
    else:
        with pytest.raises(StorageError, match=rf"^{re.escape(f'{bucket}/{place}')}: cannot list: .*{str(error)[-8:]}") as refusal:
            list_parquet(f"{bucket}/{place}")
        assert not isinstance(refusal.value, NotThere)


@pytest.mark.slow
def test_a_glob_in_a_bucket_lists_the_folders_that_it_goes_through_once(bucket, monkeypatch):
    """And of the names there those alone that begin as it says; nothing beside or below them."""
    for name in ("data/year=1/a.parquet", "data/year=2/a.parquet", "data/year=2/deep/b.parquet", "data/other/c.parquet", "more/year=3/a.parquet"):
        put(f"{bucket}/{name}")
    asked, list_pages = [], s3fs.S3FileSystem._list_pages

    def counted(self, method, **given):
        asked.append((given["Prefix"], given["Delimiter"]))
        return list_pages(self, method, **given)

    monkeypatch.setattr(s3fs.S3FileSystem, "_list_pages", counted)
    assert names(bucket, f"{bucket}/data/year=*/*.parquet") == ["data/year=1/a.parquet", "data/year=2/a.parquet"]
    logs = ("_delta_log/", ".hoodie/", "metadata/")
    found = [(prefix, delimiter) for prefix, delimiter in asked if not prefix.endswith(logs)]
    assert sorted(found) == [("data/year=", "/"), ("data/year=1/", "/"), ("data/year=2/", "/")]


def test_an_object_may_be_called_as_a_folder_is(bucket):
    """Both count."""
    for name in ("data/a.parquet", "data/a.parquet/b.parquet"):
        put(f"{bucket}/{name}")
    assert names(bucket, f"{bucket}/data/*") == names(bucket, f"{bucket}/data") == ["data/a.parquet", "data/a.parquet/b.parquet"]


@pytest.mark.parametrize("place", ["data", "data/*", "data/*/*.parquet", "data/**/*.parquet", "data/**"])
def test_a_folder_elsewhere_that_cannot_be_listed_is_refused(tmp_path, monkeypatch, place):
    """As over SFTP; a hidden one is nobody's business."""
    for name in ("data/month=1/a.parquet", "data/month=2/b.parquet", "data/_private/c.parquet"):
        put(f"{tmp_path}/{name}")
    look, away = Listed.ls, []

    def ls(self, path, detail=False, **given):
        if path.rpartition("/")[2] in away:
            raise PermissionError(13, "Permission denied", path)
        return look(self, path, detail, **given)

    monkeypatch.setattr(Listed, "ls", ls)
    away.append("_private")
    assert len(list_parquet(f"listed://{tmp_path}/{place}")) == 2
    away.append("month=2")
    with pytest.raises(StorageError, match=rf"{re.escape(place)}: cannot list: .*Permission denied: '.*month=2'$"):
        list_parquet(f"listed://{tmp_path}/{place}")


@pytest.mark.parametrize("place", ["data", "data/", "data/*", "data/*/*.parquet", "data/**/*.parquet"])
@pytest.mark.parametrize("status", [403, 404, 500, 503])
def test_a_page_that_cannot_be_had_is_refused(tmp_path, place, status):
    """Which another page leads to, so that there are files."""
    for name in ("data/month=1/a.parquet", "data/month=2/b.parquet"):
        put(f"{tmp_path}/{name}")
    with served(tmp_path) as root:
        assert len(list_parquet(f"{root}/{place}")) == 2
    with (
        served(tmp_path, refused={"data/month=2": status}) as root,
        pytest.raises(StorageError, match=rf"^{re.escape(f'{root}/{place}')}: cannot list"),
    ):
        list_parquet(f"{root}/{place}")


def test_a_file_counts_once_however_often_a_page_leads_to_it(tmp_path):
    """By a link to download it, to a part of it, and from the page itself; unless the URI asks for what is sent so."""
    (tmp_path / "data" / "month=1").mkdir(parents=True)
    for name in ("data/a.parquet", "data/month=1/a.parquet"):
        pq.write_table(pa.table({"x": [1.0]}), tmp_path / name)
    twice = ("a.parquet?download=1", "a.parquet#rows", "./a.parquet", "?dir=/data/", "./", "../data/")
    with served(tmp_path, beside=twice) as root:
        every = ["data/a.parquet", "data/month=1/a.parquet"]
        assert names(root, f"{root}/data/month=1") == every[1:]
        assert names(root, f"{root}/data") == names(root, f"{root}/data/") == names(root, f"{root}/data/*") == every
        assert names(root, f"{root}/data/**/*.parquet") == names(root, f"{root}/data/**/a*") == every
        assert names(root, f"{root}/data/*.parquet") == every[:1]
        assert names(root, f"{root}/data/a.parquet?download=1") == ["data/a.parquet?download=1"]


def test_a_page_may_lead_further_than_to_what_lies_right_below(tmp_path):
    """As one that somebody wrote by hand, beside pages of other folders."""
    (tmp_path / "data" / "month=1").mkdir(parents=True)
    pq.write_table(pa.table({"x": [1.0]}), tmp_path / "data/month=1/a.parquet")
    with served(tmp_path, beside=("month=1/a.parquet",)) as root:
        assert "data/month=1/a.parquet" in names(root, f"{root}/data/m*/*.parquet")
