"""What the tests of platforms have in common."""

import certifi
import pytest


@pytest.fixture(scope="session")
def one_certificate(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A file with one of the certificates that are trusted; to read them all takes each client 20 ms."""
    end = "-----END CERTIFICATE-----\n"
    first, _, _ = certifi.contents().partition(end)
    file = tmp_path_factory.mktemp("trusted") / "one.pem"
    file.write_text(first + end, "ascii")
    return str(file)


@pytest.fixture(autouse=True)
def _trust_few(monkeypatch: pytest.MonkeyPatch, one_certificate: str) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", one_certificate)
