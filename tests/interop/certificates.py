"""An authority of the tests and what it signs, made by the `openssl` program."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

EC = ("ec", "-pkeyopt", "ec_paramgen_curve:P-256")
RSA = ("rsa:2048",)
SETTINGS = """\
[ca]
default_ca = this
[this]
dir = {folder}
database = $dir/index.txt
serial = $dir/serial
crlnumber = $dir/crlnumber
new_certs_dir = $dir
certificate = $dir/ca.pem
private_key = $dir/ca.key
default_md = sha256
default_days = 30
default_crl_days = 30
policy = anything
copy_extensions = copy
x509_extensions = leaf
unique_subject = no
[anything]
commonName = supplied
organizationName = optional
[req]
distinguished_name = name
x509_extensions = authority
[name]
[leaf]
basicConstraints = CA:FALSE
[authority]
basicConstraints = critical,CA:TRUE
keyUsage = critical,keyCertSign,cRLSign
subjectKeyIdentifier = hash
"""


def openssl(*arguments: str | Path) -> str:
    done = subprocess.run(
        ["openssl", *map(str, arguments)], capture_output=True, text=True, timeout=20
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@dataclass(frozen=True)
class Certificate:
    cert: Path
    key: Path


class Authority:
    """Signs certificates and revokes them."""

    def __init__(self, folder: Path, name: str) -> None:
        folder.mkdir()
        self.folder = folder
        self.cert = folder / "ca.pem"
        self._settings = folder / "ca.cnf"
        self._settings.write_text(SETTINGS.format(folder=folder))
        (folder / "index.txt").touch()
        (folder / "serial").write_text("1000\n")
        (folder / "crlnumber").write_text("1000\n")
        openssl("req", "-x509", "-newkey", *EC, "-nodes", "-keyout", folder / "ca.key",
                "-out", self.cert, "-days", "30", "-subj", f"/CN={name}",
                "-config", self._settings)

    def issue(self, file_name: str, common_name: str, names: str = "",
              is_expired: bool = False, kind: tuple[str, ...] = EC) -> Certificate:
        """Signs a certificate. `names` are alternative names as openssl has them: `DNS:localhost`."""
        cert, key, request = (self.folder / f"{file_name}.{end}" for end in ("pem", "key", "csr"))
        extra = ("-addext", f"subjectAltName={names}") if names else ()
        openssl("req", "-newkey", *kind, "-nodes", "-keyout", key, "-out", request,
                "-subj", f"/CN={common_name}", *extra, "-config", self._settings)
        dates = ("-startdate", "20200101000000Z", "-enddate", "20200201000000Z")
        openssl("ca", "-batch", "-notext", "-config", self._settings, "-in", request,
                "-out", cert, *(dates if is_expired else ()))
        return Certificate(cert, key)

    def revoke(self, certificate: Certificate) -> None:
        openssl("ca", "-config", self._settings, "-revoke", certificate.cert)

    def revoked(self, path: Path) -> Path:
        """Writes the list of the revoked."""
        openssl("ca", "-config", self._settings, "-gencrl", "-out", path)
        return path
