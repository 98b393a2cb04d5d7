import pytest

from tokenwatt_site.errors import UsageError
from tokenwatt_site.load.address import Address


@pytest.mark.parametrize(
    "endpoint, authority, url",
    [
        ("http://127.0.0.1:8000/v1", "127.0.0.1:8000", "http://127.0.0.1:8000/v1"),
        ("http://127.0.0.1:8000/v1/", "127.0.0.1:8000", "http://127.0.0.1:8000/v1"),
        ("https://llm.example/v1", "llm.example", "https://llm.example/v1"),
        ("http://llm.example", "llm.example", "http://llm.example"),
        ("https://llm.example:443/a/b", "llm.example", "https://llm.example/a/b"),
        ("http://[::1]:8000/v1", "[::1]:8000", "http://[::1]:8000/v1"),
    ],
)
def test_an_endpoint_is_read(endpoint: str, authority: str, url: str) -> None:
    address = Address.of(endpoint)
    assert (address.authority, address.url) == (authority, url)


@pytest.mark.parametrize(
    "endpoint",
    ["", "simulator:", "localhost:8000", "ftp://a/v1", "http://", "http://a:b/v1", "http://a:70000",
     "http://a:0/v1",
     "http://a b/v1", "http://a/v1\r\nX: y", "http://[::1/v1", "http://exämple/v1"],
)  # fmt: skip
def test_what_is_no_http_url_is_refused_with_an_example(endpoint: str) -> None:
    with pytest.raises(UsageError) as refused:
        Address.of(endpoint)
    assert "http://127.0.0.1:8000/v1" in refused.value.hint


@pytest.mark.parametrize(
    "endpoint", ["http://me:secret@a/v1", "http://a/v1?key=secret", "http://a/v1#secret"]
)
def test_more_than_host_and_path_is_refused(endpoint: str) -> None:
    with pytest.raises(UsageError, match="more than a host and a path"):
        Address.of(endpoint)


@pytest.mark.parametrize("endpoint", ["http://me:secret@a/v1", "ftp://me:secret@a/v1"])
def test_a_password_is_not_repeated(endpoint: str) -> None:
    with pytest.raises(UsageError) as refused:
        Address.of(endpoint)
    assert "secret" not in str(refused.value)


def test_loopback_is_this_machine() -> None:
    inside = ["http://127.0.0.1/", "http://127.9.9.9/", "http://[::1]/", "http://localhost:1/"]
    assert all(Address.of(endpoint).loopback for endpoint in inside)
    outside = ["http://10.0.0.1/", "http://localhost.example/", "http://0.0.0.0/"]
    assert not any(Address.of(endpoint).loopback for endpoint in outside)


@pytest.fixture
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in ("http", "https", "all", "no"):
        for variable in (f"{name}_proxy", f"{name}_PROXY".upper()):
            monkeypatch.delenv(variable, raising=False)
    return monkeypatch


@pytest.mark.parametrize(
    "variables, found",
    [
        ({}, None),
        ({"HTTP_PROXY": "http://p:1"}, "HTTP_PROXY"),
        ({"http_proxy": "http://p:1"}, "HTTP_PROXY"),
        ({"ALL_PROXY": "http://p:1"}, "ALL_PROXY"),
        ({"HTTPS_PROXY": "http://p:1"}, None),
        ({"HTTP_PROXY": "http://p:1", "NO_PROXY": "x,llm.example"}, None),
        ({"HTTP_PROXY": "http://p:1", "NO_PROXY": "*"}, None),
        ({"HTTP_PROXY": "http://p:1", "NO_PROXY": ".example"}, None),
        ({"HTTP_PROXY": "http://p:1", "NO_PROXY": "llm.example:80"}, None),
        ({"HTTP_PROXY": "http://p:1", "NO_PROXY": "llm.example:81, 10.0.0.0/8"}, "HTTP_PROXY"),
    ],
)
def test_a_proxy_on_the_way_is_named(
    no_proxies: pytest.MonkeyPatch, variables: dict[str, str], found: str | None
) -> None:
    for name, value in variables.items():
        no_proxies.setenv(name, value)
    assert Address.of("http://llm.example/v1").proxy_variable() == found


@pytest.mark.parametrize(
    "endpoint, no_proxy, passed_by",
    [
        ("http://10.1.2.3:8000/v1", "10.1.2.3", True),
        ("http://10.1.2.3:8000/v1", "localhost, 10.0.0.0/8", True),
        ("http://10.1.2.3:8000/v1", "10.1.2.3:8000", True),
        ("http://10.1.2.3:8000/v1", "10.1.2.3:8001", False),
        ("http://10.1.2.3:8000/v1", "11.0.0.0/8,10.1.2.30,", False),
        ("http://[2001:db8::5]:8000/v1", "2001:db8::5", True),
        ("http://[2001:db8::5]:8000/v1", "[2001:db8::5]", True),
        ("http://[2001:db8::5]:8000/v1", "[2001:db8::5]:8000", True),
        ("http://[2001:db8::5]:8000/v1", "2001:db8::/32", True),
        ("http://[2001:db8::5]:8000/v1", "2001:db8::6,10.0.0.0/8", False),
        ("http://[2001:db8::5]:8000/v1", "*", True),
    ],
)
def test_no_proxy_names_addresses_and_networks(
    no_proxies: pytest.MonkeyPatch, endpoint: str, no_proxy: str, *, passed_by: bool
) -> None:
    no_proxies.setenv("ALL_PROXY", "http://p:1")
    no_proxies.setenv("NO_PROXY", no_proxy)
    assert (Address.of(endpoint).proxy_variable() is None) is passed_by
