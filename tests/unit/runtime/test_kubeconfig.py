"""Kubeconfig files and service accounts: which cluster, whom to trust, who we are."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
import yaml

from dray.runtime.access import BadAccess, ClusterAccess
from dray.runtime.credentials import Anonymous, TokenFile
from dray.runtime.exec_credentials import ExecCredentials
from dray.runtime.kubeconfig import find_access, load_kubeconfig, load_service_account

Json = dict[str, Any]


def make_config(user: Json | None = None, cluster: Json | None = None, name: str = "one", **more: Any) -> Json:
    context: Json = {"cluster": name, "user": name}
    return {
        "clusters": [{"name": name, "cluster": {"server": f"https://{name}:6443", **(cluster or {})}}],
        "users": [{"name": name, "user": user or {}}],
        "contexts": [{"name": name, "context": context}],
        "current-context": name,
        **more,
    }


def write(path: Path, config: Any) -> Path:
    path.write_text(config if isinstance(config, str) else yaml.safe_dump(config))
    return path


def load(tmp_path: Path, config: Any, context: str = "") -> ClusterAccess:
    return load_kubeconfig([write(tmp_path / "config", config)], context, {})


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


async def test_a_token_becomes_a_header(tmp_path: Path) -> None:
    access = load(tmp_path, make_config({"token": "secret"}))
    assert access.server == "https://one:6443"
    assert await access.credentials.authorization() == "Bearer secret"


async def test_a_password_becomes_a_header(tmp_path: Path) -> None:
    access = load(tmp_path, make_config({"username": "ann", "password": "pass"}))
    assert await access.credentials.authorization() == f"Basic {encoded('ann:pass')}"


async def test_a_token_file_is_found_beside_the_kubeconfig_and_wins_over_a_token(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("from-file\n")
    access = load(tmp_path, make_config({"token": "no", "tokenFile": "token"}))
    assert isinstance(access.credentials, TokenFile)
    assert await access.credentials.authorization() == "Bearer from-file"


def test_certificates_come_as_data_or_as_files(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_text("CA in a file")
    user = {"client-certificate-data": encoded("CERT"), "client-key-data": encoded("KEY")}
    access = load(tmp_path, make_config(user, {"certificate-authority": "ca.crt"}))
    assert access.authority == b"CA in a file"
    assert access.key_pair == (b"CERT", b"KEY")
    access = load(tmp_path, make_config(cluster={"certificate-authority-data": encoded("CA")}))
    assert access.authority == b"CA"


def test_certificates_are_verified_unless_the_file_says_otherwise(tmp_path: Path) -> None:
    assert load(tmp_path, make_config()).verify
    assert not load(tmp_path, make_config(cluster={"insecure-skip-tls-verify": True})).verify


def test_without_a_user_nobody_logs_in(tmp_path: Path) -> None:
    config = make_config()
    config["contexts"][0]["context"] = {"cluster": "one", "namespace": "team"}
    access = load(tmp_path, config)
    assert isinstance(access.credentials, Anonymous)
    assert access.namespace == "team"


def test_a_context_can_be_chosen(tmp_path: Path) -> None:
    one, two = make_config(name="one"), make_config(name="two")
    both = {key: [*one[key], *two[key]] for key in ("clusters", "users", "contexts")}
    assert load(tmp_path, both | {"current-context": "one"}, "two").server == "https://two:6443"


def test_of_several_files_the_first_counts(tmp_path: Path) -> None:
    first = write(tmp_path / "a", make_config(name="one") | {"current-context": ""})
    second = write(tmp_path / "b", make_config(name="one", cluster={"server": "https://other"}))
    third = write(tmp_path / "c", make_config(name="two"))
    access = find_access(environ={"KUBECONFIG": f"{tmp_path / 'missing'}:{first}:{second}:{third}"})
    assert access.server == "https://one:6443"


def test_the_file_in_the_home_folder_is_the_default(tmp_path: Path) -> None:
    (tmp_path / ".kube").mkdir()
    write(tmp_path / ".kube" / "config", make_config())
    assert find_access(environ={"HOME": str(tmp_path)}).server == "https://one:6443"


def test_acting_as_somebody_else(tmp_path: Path) -> None:
    user = {"token": "t", "as": "bob", "as-groups": ["a", "b"], "as-user-extra": {"scope": ["x"]}}
    assert load(tmp_path, make_config(user)).impersonate == (
        ("Impersonate-User", "bob"),
        ("Impersonate-Group", "a"),
        ("Impersonate-Group", "b"),
        ("Impersonate-Extra-scope", "x"),
    )


def test_a_plugin_is_found_beside_the_kubeconfig_and_told_of_the_cluster(tmp_path: Path) -> None:
    plugin = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": "./login",
        "args": ["--quiet"],
        "env": [{"name": "ZONE", "value": "a"}],
        "provideClusterInfo": True,
    }
    access = load(tmp_path, make_config({"exec": plugin}, {"certificate-authority-data": encoded("CA")}))
    assert isinstance(access.credentials, ExecCredentials)
    plan = access.credentials.plugin
    assert plan.command == str(tmp_path / "login")
    assert (plan.arguments, plan.environment) == (("--quiet",), (("ZONE", "a"),))
    assert plan.cluster == {"server": "https://one:6443", "certificate-authority-data": encoded("CA")}


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        ("[1, 2", "is not a kubeconfig file"),
        ("just text", "is not a kubeconfig file"),
        ("", "there is no current-context; contexts: none"),
        (make_config() | {"current-context": "nope"}, "there is no context 'nope'; there are: one"),
        (make_config() | {"clusters": []}, "there is no cluster 'one'; there are: none"),
        (make_config() | {"users": [{"name": "two", "user": {}}]}, "there is no user 'one'; there are: two"),
        (make_config(cluster={"server": "one:6443"}), "server: expected https://HOST:PORT, got 'one:6443'"),
        (make_config(cluster={"certificate-authority": "ca"}), "certificate-authority: ca: No such file"),
        (make_config(cluster={"certificate-authority-data": "&&"}), "certificate-authority-data"),
        (make_config({"client-key-data": encoded("KEY")}), "go together; one of them is missing"),
        (make_config(cluster={"proxy-url": "http://proxy"}), "proxy-url isn't supported"),
        (make_config({"auth-provider": {"name": "gcp"}}), "auth-provider 'gcp' isn't supported any more"),
        (make_config({"exec": {"command": "x"}}), "exec: apiVersion '' isn't supported"),
        (make_config() | {"clusters": ["one"]}, "clusters: expected entries with a name and a cluster"),
    ],
)
def test_what_is_wrong_is_said_with_the_file(tmp_path: Path, config: Any, problem: str) -> None:
    with pytest.raises(BadAccess) as caught:
        load(tmp_path, config)
    assert problem in str(caught.value)
    assert str(tmp_path / "config") in str(caught.value)


def test_a_pod_uses_its_service_account(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_text("CA")
    (tmp_path / "namespace").write_text("team\n")
    environ = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    access = load_service_account(environ, tmp_path)
    assert access.server == "https://[fd00::1]:443"
    assert (access.namespace, access.authority) == ("team", b"CA")
    assert isinstance(access.credentials, TokenFile)


def test_with_no_cluster_anywhere_the_ways_to_name_one_are_told(tmp_path: Path) -> None:
    with pytest.raises(BadAccess, match="--kubeconfig FILE"):
        find_access(environ={"HOME": str(tmp_path)})
    with pytest.raises(BadAccess, match="which isn't there"):
        find_access(environ={"HOME": str(tmp_path), "KUBECONFIG": str(tmp_path / "gone")})
