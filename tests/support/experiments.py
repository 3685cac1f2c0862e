"""Experiment texts that tests share: small, quick, complete."""

NGINX_CONF = """\
    daemon off;
    worker_processes 1;
    pid nginx.pid;
    error_log stderr;
    events { worker_connections 256; }
    http {
      access_log off;
      client_body_temp_path body;  proxy_temp_path proxy;  fastcgi_temp_path fastcgi;  uwsgi_temp_path uwsgi;  scgi_temp_path scgi;
      server { listen 127.0.0.1:${port.http}; location / { return 200 "hello"; } }
    }
"""


def web(connections=(1, 2), replicates=1, warm_up="1s", pause="100ms", measure="2s", name="test/web", extra=""):
    levels = ", ".join(str(c) for c in connections)
    conf = NGINX_CONF.replace("\n    ", "\n      ").lstrip()
    return f"""\
perfrig: 1
name: {name}
factors:
  connections: [{levels}]
replicates: {replicates}
ports: [http]
files:
  nginx.conf: |
      {conf}
services:
  nginx:
    role: app
    command: [/usr/sbin/nginx, -p, "${{run.directory}}", -c, "${{run.directory}}/nginx.conf"]
    ready: {{http: "http://127.0.0.1:${{port.http}}/", within: 20s}}
tools:
  wrk:
    tool: wrk
    role: load
    threads: 1
    connections: ${{connections}}
    url: http://127.0.0.1:${{port.http}}/
phases: {{warm_up: {warm_up}, pause: {pause}, measure: {measure}}}
{extra}"""


# Counts on standard output, one line every `every` seconds, and writes each number to a file before it prints it: the
# truth that samples are held against. It runs until it is ended or has counted to `count`.
GENERATOR = r"""
import os, sys, time
truth = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
every, seconds = float(sys.argv[2]), float(sys.argv[3])
started = time.monotonic()
number = 0
while time.monotonic() - started < seconds:
    number += 1
    os.write(truth, b"%d\n" % number)
    sys.stdout.write("count %d\n" % number)
    sys.stdout.flush()
    time.sleep(every)
print("total %d" % number)
"""


def generator(truth, measure="5s", every=0.02, replicates=1, name="test/generator"):
    seconds = float(measure.rstrip("s"))
    body = GENERATOR.strip().replace("\n", "\n    ")
    return f"""\
perfrig: 1
name: {name}
replicates: {replicates}
files:
  generator.py: |
    {body}
tools:
  count:
    tool: command
    role: load
    warms_up: false
    command: [/usr/bin/python3, generator.py, "{truth}", "{every}", "{seconds}"]
    metrics: [{{name: total, unit: count, pattern: "total (\\\\d+)"}}]
    series: [{{name: counted, unit: count, pattern: "count (\\\\d+)"}}]
phases: {{measure: {measure}}}
"""


def command(script, measure="1s", name="test/command", metrics='[{name: value, unit: count, pattern: "value (\\\\d+)"}]',
            extra="", options=""):
    """One tool that is a shell script."""
    body = script.strip().replace("\n", "\n    ")
    return f"""\
perfrig: 1
name: {name}
files:
  tool.sh: |
    {body}
tools:
  script:
    tool: command
    role: load
    warms_up: false
    command: [/bin/sh, tool.sh]
    metrics: {metrics}
{options}
phases: {{measure: {measure}}}
{extra}"""


def service(script, ready, measure="1s", extra="", name="test/service"):
    """A service that is a shell script, and a tool that prints a value."""
    body = script.strip().replace("\n", "\n    ")
    return f"""\
perfrig: 1
name: {name}
ports: [http]
files:
  service.sh: |
    {body}
services:
  server:
    role: app
    command: [/bin/sh, service.sh]
    ready: {ready}
{extra}
tools:
  script:
    tool: command
    role: load
    warms_up: false
    command: "sleep 1; echo value 7"
    metrics: [{{name: value, unit: count, pattern: "value (\\\\d+)"}}]
phases: {{measure: {measure}}}
"""
