"""What everybody can reach is fetched from, and nothing else, however it is written."""

from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segue.core.addresses import Refused, is_public, literal, redirected, refused_addresses, target_of

PUBLIC = [
    *("1.1.1.1", "8.8.8.8", "93.184.216.34", "100.63.255.255", "100.128.0.1", "172.15.0.1", "172.32.0.1", "192.0.1.1"),
    *("168.63.129.15", "198.17.255.255", "198.20.0.0", "223.255.255.255", "169.253.0.1", "11.0.0.0", "126.0.0.1"),
    *("2606:4700:4700::1111", "2a00:1450:4001:80b::200e", "2001:4860:4860::8888", "2620:4f:8000::1", "2001:200::1"),
]
NOT_PUBLIC = [
    *("0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "100.64.0.1", "100.100.100.200", "100.127.255.255"),
    *("127.0.0.1", "127.255.255.254", "168.63.129.16", "169.254.0.1", "169.254.169.254", "169.254.170.2"),
    *("172.16.0.1", "172.31.255.255", "192.0.0.1", "192.0.0.192", "192.0.2.1", "192.88.99.1", "192.168.0.1"),
    *("198.18.0.1", "198.19.255.255", "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.255.255.255", "240.0.0.1"),
    *("255.255.255.255", "::", "::1", "::7f00:1", "::ffff:127.0.0.1", "::ffff:8.8.8.8", "::ffff:0:127.0.0.1"),
    *("64:ff9b::7f00:1", "64:ff9b::808:808", "64:ff9b:1::a00:1", "100::1", "2001::1", "2001:0:7f00:1::", "2001:10::1"),
    *("2001:20::1", "2001:db8::1", "2002:7f00:1::", "2002:808:808::", "3fff::1", "4000::1", "5f00::1", "fc00::1"),
    *("fd00:ec2::254", "fd20:ce::254", "fe80::1", "fec0::1", "ff02::1", "fe80::1%eth0", "2606:4700::1%1"),
    *("2606:4700::5efe:7f00:1", "2606:4700::200:5efe:a00:1"),
]


@pytest.mark.parametrize("address", PUBLIC)
def test_what_everybody_can_reach_is_public(address: str) -> None:
    assert is_public(ip_address(address))


@pytest.mark.parametrize("address", NOT_PUBLIC)
def test_what_only_some_can_reach_is_not_public(address: str) -> None:
    assert not is_public(ip_address(address))


@given(st.ip_addresses())
def test_nothing_is_public_that_python_holds_for_private(address: object) -> None:
    found = ip_address(str(address))
    if is_public(found):
        assert found.is_global
        assert not any((found.is_private, found.is_multicast, found.is_loopback, found.is_link_local))


DISGUISED = [
    *("2130706433", "017700000001", "0x7f000001", "0X7F000001", "127.1", "127.0.1", "0177.0.0.1", "0x7f.0.0.1"),
    *("0x7f.1", "127.0.0.01", "127.000.000.001", "127.0.0.1.1", "127.0.0.256", "1.2.3", "0", "0x", "134744072"),
    *("①②⑦.1", "example.0x7f"),
]


@pytest.mark.parametrize("host", DISGUISED)
def test_an_address_in_disguise_is_refused_wherever_it_leads(host: str) -> None:
    with pytest.raises(Refused):
        target_of(f"http://{host}/")


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("http://127.0.0.1./", "127.0.0.1"),
        ("http://１２７。０。０。１/", "127.0.0.1"),
        ("http://LOCALHOST/", "localhost"),
        ("http://ⓛocalhost/", "localhost"),
        ("http://[::FFFF:127.0.0.1]/", "::ffff:127.0.0.1"),
        ("http://[::ffff:7f00:1]/", "::ffff:127.0.0.1"),
        ("http://[::FFFF:0:7f00:1]/", "::ffff:0:7f00:1"),
        ("http://[0:0:0:0:0:0:0:1]/", "::1"),
        ("https://bücher.example/", "xn--bcher-kva.example"),
        ("https://Example.ORG:443", "example.org"),
    ],
)
def test_a_host_is_what_it_means_and_not_how_it_is_written(url: str, host: str) -> None:
    assert target_of(url).host == host


@pytest.mark.parametrize(
    "url",
    [
        *(
            "",
            "example.org",
            "//example.org/",
            "http:example.org",
            "http://",
            "http:///etc/passwd",
            "http://.",
            "http://..",
        ),
        *("file:///etc/passwd", "ftp://example.org/", "gopher://example.org/", "data:text/plain,x", "javascript:1"),
        *("http://user@example.org/", "http://user:pass@example.org/", "http://@example.org/", "http://a@b@c.org/"),
        *("http://example.org:22/", "http://example.org:0/", "http://example.org:99999/", "http://example.org:x/"),
        *("http://example.org:6379/", "https://example.org:-1/", "http://exa mple.org/", "http://example.org/a b"),
        *(
            "http://example.org\\@127.0.0.1/",
            "http:\\\\example.org/",
            "http://example.org/\r\nHost: x",
            "http://a\tb.org/",
        ),
        *(
            "http://127%2e0%2e0%2e1/",
            "http://%31%32%37.0.0.1/",
            "http://[::1/",
            "http://[::1%25lo]/",
            "http://[127.0.0.1]/",
        ),
        *("http://[::1]x/", "http://a..b/", "http://-a.org/", "http://" + "a" * 64 + ".org/", "http://ex℀mple.org/"),
        "http://example.org/" + "x" * 2_000,
    ],
)
def test_what_is_no_good_url_is_refused(url: str) -> None:
    with pytest.raises(Refused):
        target_of(url)


def test_a_url_is_put_together_as_it_was_taken_apart() -> None:
    assert target_of("http://example.org:8080/a/b?c=d#e").url == "http://example.org:8080/a/b?c=d"
    assert target_of("https://[2606:4700::1]/").authority == "[2606:4700::1]"
    assert target_of("http://example.org").url == "http://example.org/"
    assert target_of("http://example.org:22/", None).port == 22


@pytest.mark.parametrize(
    ("location", "url"),
    [
        ("/b", "https://example.org/b"),
        ("b?c", "https://example.org/dir/b?c"),
        ("//other.org/x", "https://other.org/x"),
        ("http://other.org", "http://other.org/"),
    ],
)
def test_a_redirect_leads_where_it_says(location: str, url: str) -> None:
    assert redirected(target_of("https://example.org/dir/a"), location).url == url


@pytest.mark.parametrize(
    "location", ["file:///etc/passwd", "http://127.1/", "//u@h/", "http://[", "http://a b/", "\x00"]
)
def test_a_redirect_is_judged_like_a_url(location: str) -> None:
    with pytest.raises(Refused):
        redirected(target_of("https://example.org/"), location)


def test_one_address_that_is_not_public_is_enough() -> None:
    mixed = [ip_address("8.8.8.8"), ip_address("10.0.0.1")]
    assert refused_addresses(mixed) == mixed[1:]


@given(st.text())
def test_any_text_is_a_url_or_refused(text: str) -> None:
    try:
        target = target_of(f"http://{text}")
    except Refused:
        return
    assert target.host.isascii()
    assert target_of(target.url) == target
    assert literal(target.host) is not None or not target.host.rpartition(".")[2].isdigit()
