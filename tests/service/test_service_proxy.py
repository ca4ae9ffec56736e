"""The service behind the real nginx, by the shipped configuration and by nginx' defaults."""

from __future__ import annotations

import os
import re
import shutil
import socket
import ssl
import subprocess
import time
from pathlib import Path

import httpx
import pytest

pytest.importorskip("fastapi", reason="the service needs outsample[serve]")

from service_tools import AUTHORISED, Process, rows, saved

SHIPPED = Path(__file__).parents[2] / "deploy" / "nginx.conf"
# The least that makes nginx a proxy: it sends a loopback Host from a loopback address.
DEFAULT = "server { listen 127.0.0.1:HTTP; location / { proxy_pass http://127.0.0.1:SERVICE; } }"
MAIN = """
daemon off; pid FOLDER/nginx.pid; error_log stderr; worker_processes 1;
events { worker_connections 256; }
http {
  access_log off; client_body_temp_path FOLDER/body; proxy_temp_path FOLDER/proxy;
  fastcgi_temp_path FOLDER/f; uwsgi_temp_path FOLDER/u; scgi_temp_path FOLDER/s;
  SERVERS
}
"""


@pytest.fixture(scope="module")
def nginx():
    found = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")
    if found is None or shutil.which("openssl") is None:
        if os.environ.get("CI") == "true":
            pytest.fail("CI has no nginx or no openssl: install the Debian packages")
        pytest.skip("nginx or openssl is not installed")
    return found


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    running = Process(saved(tmp_path_factory.mktemp("proxied")))
    yield running
    running.end()


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


class Proxy:
    def __init__(self, nginx, folder, servers, port):
        text = MAIN.replace("SERVERS", servers).replace("FOLDER", str(folder))
        (folder / "nginx.conf").write_text(text)
        command = [nginx, "-p", str(folder), "-c", str(folder / "nginx.conf")]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE)
        end = time.monotonic() + 30
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                return
            except OSError:
                assert self.process.poll() is None, self.process.stderr.read().decode()
                assert time.monotonic() < end
                time.sleep(0.05)

    def end(self):
        self.process.terminate()
        self.process.wait(20)


def test_the_token_is_needed_behind_a_proxy_on_this_machine(nginx, service, tmp_path):
    """nginx' defaults made every client look like one on this machine, which needed no token."""
    port = free_port()
    servers = DEFAULT.replace("HTTP", str(port)).replace("SERVICE", str(service.port))
    proxy = Proxy(nginx, tmp_path, servers, port)
    body = {"rows": rows(1).tolist()}
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
        assert client.post("/place", json=body).status_code == 401
        assert client.get("/model").status_code == 401
        assert client.post("/learn", json=body).status_code == 401
        assert client.post("/place", json=body, headers=AUTHORISED).status_code == 200
    proxy.end()


def test_the_shipped_configuration(nginx, service, tmp_path):
    key, certificate, port, plain = tmp_path / "key", tmp_path / "cert", free_port(), free_port()
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj",
         "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out",
         certificate],
        check=True, capture_output=True,
    )  # fmt: skip
    text = SHIPPED.read_text()
    for old, new in (
        ("127.0.0.1:8000", f"127.0.0.1:{service.port}"), ("listen 80", f"listen 127.0.0.1:{plain}"),
        ("listen 443", f"listen 127.0.0.1:{port}"), ("maps.example.org", "localhost"),
        ("/etc/ssl/outsample/fullchain.pem", str(certificate)),
        ("/etc/ssl/outsample/key.pem", str(key)),
    ):  # fmt: skip
        assert old in text
        text = text.replace(old, new)
    proxy = Proxy(nginx, tmp_path, text, port)
    context = ssl.create_default_context(cafile=str(certificate))
    with httpx.Client(base_url=f"https://localhost:{port}", verify=context, timeout=60) as client:
        assert client.get("/health").status_code == 200
        assert client.get("/model").status_code == 401
        body = {"rows": rows(2).tolist()}
        forged = {"X-Forwarded-For": "10.9.8.7"}
        origin = {"Origin": f"https://localhost:{port}", "Sec-Fetch-Site": "same-origin"}
        answer = client.post("/place", json=body, headers={**AUTHORISED, **forged, **origin})
        assert answer.status_code == 200 and answer.headers["strict-transport-security"]
        key_header = {**AUTHORISED, "Idempotency-Key": "through-nginx"}
        assert client.post("/learn", json=body, headers=key_header).status_code == 200
        assert client.post("/learn", json=body, headers=key_header).json()["repeated"]
        with client.stream("GET", "/events?after=0", headers=AUTHORISED) as stream:
            lines = stream.iter_lines()
            assert any(line.startswith("event: arrivals") for line in lines)
    moved = httpx.get(f"http://localhost:{plain}/model", follow_redirects=False)
    assert moved.status_code == 301 and moved.headers["location"].startswith("https://localhost")
    number = answer.headers["x-request-id"]
    assert re.fullmatch(r"[0-9a-f]{32}", number)
    end = time.monotonic() + 20
    while not (found := [x for x in service.lines if x.get("request_id") == number]):
        assert time.monotonic() < end
        time.sleep(0.05)
    assert found[0]["client"] == "127.0.0.1"  # not what the client forged
    proxy.end()
