"""How certificates are verified: by the system's authorities, or by those of one file."""

import ssl

from tokenwatt_site.errors import UsageError
from tokenwatt_site.load.address import Address


def tls_context(address: Address, ca_file: str | None) -> ssl.SSLContext | None:
    """Return what verifies the server's certificate and name; None where it speaks no TLS.

    Args:
        address: the server.
        ca_file: PEM file of the only authorities that are trusted; None trusts the system's.

    Raises:
        UsageError: the file can't be read, or holds no certificate.
    """
    if address.scheme != "https":
        return None
    try:
        return ssl.create_default_context(cafile=ca_file)
    except ssl.SSLError:
        raise UsageError(
            f"engine.ca_file {ca_file} holds no certificate",
            "it must be a PEM file: -----BEGIN CERTIFICATE-----",
        ) from None
    except OSError as error:
        raise UsageError(
            f"engine.ca_file {ca_file} can't be read: {error.strerror}",
            "correct its path; a relative one starts in the folder that the program runs in",
        ) from None
