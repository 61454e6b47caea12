"""Real proxies in front of a receiver: how each is started, and with which configuration.

The recommended configurations are those of the page "Behind a proxy" in the documentation. They are read out of it, and
only addresses, ports and folders are replaced. The others are what people have who did not read it."""

import os
import re
import shutil
import subprocess
from dataclasses import dataclass, field

from programs import Failed, Process, free_port, listens, wait_until
from wire import CurlWire, PlainWire

HERE = os.path.dirname(os.path.abspath(__file__))
PAGE = os.path.join(HERE, "../../Sources/Receiving/PostcardServer/PostcardServer.docc/BehindAProxy.md")
FOLDERS = os.pathsep.join([os.environ.get("PATH", ""), "/usr/local/sbin", "/usr/sbin", "/sbin"])

# The smallest cap that a proxy has by default: that of nginx.
CAP = 1 << 20


def section_of_page(heading):
    with open(PAGE, encoding="utf-8") as page:
        return page.read().partition(f"\n{heading}\n")[2].partition("\n##")[0]


def configuration_of_page(heading):
    """The first block of code below a heading of the page."""
    block = re.search(r"^```\w+\n(.*?)^```$", section_of_page(f"### {heading}"), re.MULTILINE | re.DOTALL)
    if not block:
        raise Failed(f"the page has no configuration below the heading {heading}")
    return block.group(1)


def receiver_options_of_page(heading):
    """The receiver's options behind that proxy, or else those behind any."""
    for section in (f"### {heading}", "## Configurations"):
        if command := re.search(r"^postcard serve (.*)$", section_of_page(section), re.MULTILINE):
            return command.group(1).split()
    raise Failed("the page does not say how to start the receiver")


def substituted(text, substitutions):
    """Replaces what has to be there, so that a page that was changed is noticed."""
    for old, new in substitutions.items():
        if old not in text:
            raise Failed(f"the configuration does not contain {old!r}")
        text = text.replace(old, new)
    return text


@dataclass(frozen=True)
class Kind:
    """A proxy with a configuration."""
    program: str
    # The command, in which {file}, {folder} and {port} are replaced.
    command: list
    # The heading on the page, or the configuration itself.
    page: str = None
    text: str = None
    # What goes around the configuration, which is {text} in it.
    around: str = "{text}"
    # What is replaced in the page's configuration: addresses, and a cap on bodies.
    addresses: dict = field(default_factory=dict)
    cap: dict = field(default_factory=dict)
    # What clients get for a body above the cap.
    cap_statuses: tuple = (413,)
    # Whether it closes connections with bytes unread, by which clients lose its own refusals.
    loses_refusals: bool = False
    # What is replaced so that idle connections are closed 60 times as soon.
    hurry: dict = None
    extra_arguments_in_a_hurry: tuple = ()
    is_secure: bool = False
    # The receiver's options behind a configuration that is not the page's.
    receiver_options: tuple = ("--client-share", "100")
    # Whether it keeps back what the receiver sends until the response is complete.
    keeps_events: bool = False
    # Cases that cannot go well with this configuration, and why: what the page's configuration is for.
    known: dict = field(default_factory=dict)


NGINX_AROUND = """
{user}
daemon off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{ worker_connections 1024; }}
http {{
    access_log {folder}/access.log;
    client_body_temp_path {folder}/bodies;
    proxy_temp_path {folder}/responses;
    fastcgi_temp_path {folder}/unused;
    scgi_temp_path {folder}/unused;
    uwsgi_temp_path {folder}/unused;
    {text}
}}
"""
NGINX_COMMAND = ["nginx", "-e", "{folder}/error.log", "-p", "{folder}/", "-c", "{file}"]
NGINX_CAP = {"client_max_body_size 0;": "client_max_body_size 1m;"}


def nginx(text, upstream="", **options):
    """What people write who did not read the page."""
    return Kind(
        program="nginx", command=NGINX_COMMAND, around=NGINX_AROUND, cap=NGINX_CAP,
        addresses={"listen 80;": "listen 127.0.0.1:{port};", "127.0.0.1:8080": "127.0.0.1:{backend}"},
        text=upstream + "server { listen 80; client_max_body_size 0; location / { " + text + " } }\n", **options)


APACHE_MODULES = ["mpm_event", "authz_core", "alias", "proxy", "proxy_http", "headers", "reqtimeout"]
APACHE_AROUND = """
ServerName localhost
ServerRoot {folder}
DefaultRuntimeDir {folder}
PidFile {folder}/apache.pid
ErrorLog {folder}/error.log
User nobody
Group nogroup
{modules}
{text}
"""


def apache_modules():
    folders = ["/usr/lib/apache2/modules", "/usr/lib64/httpd/modules", "/usr/local/lib/httpd/modules"]
    folder = next((each for each in folders if os.path.isdir(each)), folders[0])
    return "\n".join(f"LoadModule {name}_module {folder}/mod_{name}.so" for name in APACHE_MODULES)


CADDY_AROUND = """
{{
    admin off
    auto_https off
}}
{text}
"""
VARNISH_COMMAND = [
    "varnishd", "-F", "-n", "{folder}/state", "-f", "{file}", "-a", "127.0.0.1:{port}", "-j", "none", "-T", "none",
    "-s", "malloc,32m", "-l", "8m"]
HAPROXY_COMMAND = ["haproxy", "-db", "-f", "{file}"]
APACHE_COMMAND = ["apache2", "-D", "FOREGROUND", "-f", "{file}"]
LIGHTTPD_COMMAND = ["lighttpd", "-D", "-f", "{file}"]
CADDY_COMMAND = ["caddy", "run", "--adapter", "caddyfile", "--config", "{file}"]
LIGHTTPD_AROUND = """
server.bind = "127.0.0.1"
server.upload-dirs = ( "{folder}" )
server.errorlog = "{folder}/error.log"
{text}
"""

HAPROXY_ADDRESSES = {"bind :80": "bind 127.0.0.1:{port}", "127.0.0.1:8080": "127.0.0.1:{backend}"}
HAPROXY_CAP = {
    "default_backend":
        "http-request deny deny_status 413 if {{ req.hdr_val(content-length) gt 1048576 }}\n    default_backend"}
APACHE_ADDRESSES = {
    "Listen 80\n": "Listen 127.0.0.1:{port}\n", "*:80": "127.0.0.1:{port}", "127.0.0.1:8080": "127.0.0.1:{backend}"}
# LimitRequestBody does not count for requests that Apache passes on.
APACHE_CAP = {
    "    ProxyPass /":
        '    <If "%{{HTTP:Content-Length}} -gt 1048576">\n    Redirect 413 /\n    </If>\n    ProxyPass /'}
CADDY_ADDRESSES = {":80 {": ":{port} {{\n    bind 127.0.0.1", "127.0.0.1:8080": "127.0.0.1:{backend}"}
CADDY_CAP = {"reverse_proxy": "request_body {{\n        max_size 1MiB\n    }}\n    reverse_proxy"}
# Caddy 2.6 passes the body on until the cap is reached, and takes that for a failure of the receiver.
CADDY_CAP_STATUSES = (413, 502)
LIGHTTPD_ADDRESSES = {"server.port = 80\n": "server.port = {port}\n", '"port" => 8080': '"port" => {backend}'}
LIGHTTPD_CAP = {"server.port": "server.max-request-size = 1024\nserver.port"}
VARNISH_ADDRESSES = {'.port = "8080";': '.port = "{backend}";'}
VARNISH_CAP = {
    "sub vcl_recv {{":
        "import std;\nsub vcl_recv {{\n"
        "    if (std.integer(req.http.Content-Length, 0) > 1048576) {{ return (synth(413)); }}"}

KINDS = {
    "nginx": Kind(
        program="nginx", command=NGINX_COMMAND, page="nginx", around=NGINX_AROUND, cap=NGINX_CAP,
        addresses={"listen 80;": "listen 127.0.0.1:{port};", "127.0.0.1:8080": "127.0.0.1:{backend}"},
        hurry={"keepalive_timeout 60s;": "keepalive_timeout 1s;"}),
    "nginx-http2": Kind(
        program="nginx", command=NGINX_COMMAND, page="nginx with TLS and HTTP/2", around=NGINX_AROUND, cap=NGINX_CAP,
        addresses={
            "listen 443 ssl http2;": "listen 127.0.0.1:{port} ssl http2;", "127.0.0.1:8080": "127.0.0.1:{backend}",
            "/etc/ssl/uploads.example.pem": "{certificate}", "/etc/ssl/private/uploads.example.key": "{key}"},
        hurry={"keepalive_timeout 60s;": "keepalive_timeout 1s;"}, is_secure=True),
    "haproxy": Kind(
        program="haproxy", command=HAPROXY_COMMAND, page="HAProxy", addresses=HAPROXY_ADDRESSES, cap=HAPROXY_CAP,
        hurry={"timeout client 60s": "timeout client 1s"}),
    "apache": Kind(
        program="apache2", command=APACHE_COMMAND, page="Apache", around=APACHE_AROUND, addresses=APACHE_ADDRESSES,
        cap=APACHE_CAP, hurry={"ttl=60": "ttl=1"}),
    "caddy": Kind(
        program="caddy", command=CADDY_COMMAND, page="Caddy", around=CADDY_AROUND, addresses=CADDY_ADDRESSES,
        cap=CADDY_CAP, cap_statuses=CADDY_CAP_STATUSES, hurry={"keepalive 60s": "keepalive 1s"}),
    "lighttpd": Kind(
        program="lighttpd", command=LIGHTTPD_COMMAND, page="lighttpd", around=LIGHTTPD_AROUND,
        addresses=LIGHTTPD_ADDRESSES, cap=LIGHTTPD_CAP, hurry={}),
    "varnish": Kind(
        program="varnishd", command=VARNISH_COMMAND, page="Varnish", addresses=VARNISH_ADDRESSES, cap=VARNISH_CAP,
        loses_refusals=True,
        hurry={}, extra_arguments_in_a_hurry=("-p", "backend_idle_timeout=1")),
    "nginx-http10": nginx("proxy_pass http://127.0.0.1:8080;"),
    "nginx-http11": nginx("proxy_pass http://127.0.0.1:8080; proxy_http_version 1.1;"),
    "nginx-keepalive": nginx(
        'proxy_pass http://postcard; proxy_http_version 1.1; proxy_set_header Connection ""; '
        "proxy_set_header Host $http_host;",
        "upstream postcard { server 127.0.0.1:8080; keepalive 16; keepalive_timeout 60s; }\n",
        hurry={"keepalive_timeout 60s;": "keepalive_timeout 1s;"}),
    "nginx-unbuffered": nginx(
        "proxy_pass http://127.0.0.1:8080; proxy_http_version 1.1; proxy_request_buffering off; proxy_buffering off;"),
    "haproxy-plain": Kind(
        program="haproxy", command=HAPROXY_COMMAND, addresses=HAPROXY_ADDRESSES, cap=HAPROXY_CAP, text="""
defaults
    mode http
    timeout connect 5s
    timeout client 50s
    timeout server 50s

frontend web
    bind :80
    default_backend postcard

backend postcard
    server postcard 127.0.0.1:8080
"""),
    "apache-plain": Kind(
        program="apache2", command=APACHE_COMMAND, around=APACHE_AROUND, addresses=APACHE_ADDRESSES, cap=APACHE_CAP,
        text="""
Listen 80
<VirtualHost *:80>
    ProxyPass / http://127.0.0.1:8080/
</VirtualHost>
"""),
    "caddy-plain": Kind(
        program="caddy", command=CADDY_COMMAND, around=CADDY_AROUND, addresses=CADDY_ADDRESSES, cap=CADDY_CAP,
        cap_statuses=CADDY_CAP_STATUSES, text=":80 {\n    reverse_proxy 127.0.0.1:8080\n}\n"),
    "lighttpd-plain": Kind(
        program="lighttpd", command=LIGHTTPD_COMMAND, around=LIGHTTPD_AROUND, addresses=LIGHTTPD_ADDRESSES,
        cap=LIGHTTPD_CAP, keeps_events=True, text="""
server.modules += ( "mod_proxy" )
server.document-root = "/var/empty"
server.port = 80
proxy.server = ( "" => ( ( "host" => "127.0.0.1", "port" => 8080 ) ) )
"""),
    "varnish-plain": Kind(
        program="varnishd", command=VARNISH_COMMAND, addresses=VARNISH_ADDRESSES, cap=VARNISH_CAP,
        loses_refusals=True,
        # It answers 503 for a 104.
        receiver_options=("--client-share", "100", "--interim-responses", "never"), text="""
vcl 4.1;
backend default {
    .host = "127.0.0.1";
    .port = "8080";
}
sub vcl_recv {
}
"""),
}


class Front:
    """A proxy in front of a receiver, on a port of its own, with everything it writes in a folder."""

    def __init__(self, name, folder, backend, is_capped=False, in_a_hurry=False, trust=None, cap=None):
        self.name, self.kind, self.trust = name, KINDS[name], trust
        self.port = free_port()
        self.folder = folder
        os.makedirs(folder, exist_ok=True)
        # Apache leaves its processes to another user when root starts it.
        for each in (folder, os.path.dirname(folder)):
            os.chmod(each, 0o755)
        values = {"port": self.port, "backend": backend, "folder": folder, "modules": apache_modules(),
                  "user": "user root;" if os.geteuid() == 0 else ""}
        if self.kind.is_secure:
            values |= {"certificate": trust.certificate, "key": trust.key}
        file = os.path.join(folder, "configuration")
        with open(file, "w", encoding="utf-8") as configuration:
            configuration.write(self._configuration(values, is_capped, in_a_hurry, cap))
        command = [each.format(file=file, **values) for each in self.kind.command]
        command += self.kind.extra_arguments_in_a_hurry if in_a_hurry else ()
        command[0] = shutil.which(command[0], path=FOLDERS) or command[0]
        state = {"XDG_DATA_HOME": folder, "XDG_CONFIG_HOME": folder, "HOME": folder}
        self.process = Process(command, os.path.join(folder, "log"), state)
        self.start()

    def _configuration(self, values, is_capped, in_a_hurry, cap):
        kind = self.kind
        text = configuration_of_page(kind.page) if kind.page else kind.text
        # Braces are written twice, as in the replacements.
        text = substituted(text.replace("{", "{{").replace("}", "}}"), self._escaped(kind.addresses))
        if cap:
            text = substituted(text, cap)
        elif is_capped:
            text = substituted(text, kind.cap)
        if in_a_hurry:
            text = substituted(text, kind.hurry)
        return kind.around.format(text=text.format(**values), **values)

    @staticmethod
    def _escaped(substitutions):
        return {old.replace("{", "{{"): new for old, new in substitutions.items()}

    def start(self):
        self.process.start()
        self.process.wait_for_port(self.port)

    def kill(self):
        self.process.kill()
        # Varnish's child ends a moment later.
        wait_until(lambda: not listens(self.port), 10, f"{self.name} still listens after it was killed")

    @property
    def url(self):
        return f"https://localhost:{self.port}" if self.kind.is_secure else f"http://127.0.0.1:{self.port}"

    def wire(self, address=None, port=None):
        """Sends raw requests through the proxy."""
        if self.kind.is_secure:
            return CurlWire(port or self.port, self.trust.certificate, address)
        return PlainWire(port or self.port, address)


class Direct:
    """No proxy: what the others are compared with."""
    name = "direct"

    def __init__(self, receiver):
        self.port = receiver.port
        self.url = f"http://127.0.0.1:{self.port}"

    def wire(self, address=None, port=None):
        return PlainWire(port or self.port, address)


def version(program):
    """The version that a proxy reports, or nothing if it is not installed."""
    path = shutil.which(program, path=FOLDERS)
    if not path:
        return None
    option = {"varnishd": "-V", "caddy": "version"}.get(program, "-v")
    shown = subprocess.run([path, option], capture_output=True, text=True)
    return (shown.stdout + shown.stderr).strip().splitlines()[0]
