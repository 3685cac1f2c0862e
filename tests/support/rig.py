"""A whole perfrig for a test: a database in a private PostgreSQL, a controller and agents, each a real process on a free
port, in a folder of their own. Everything is ended by the process ids that were started here.

PERFRIG_BIN names the folder of the programs under test.
"""
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
import uuid

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("PERFRIG_BIN", ROOT / "build/asan/bin"))
AM_ROOT = os.getuid() == 0
# Where root runs the tests: two users that every Debian and Fedora has.
AGENT_USER, WORKLOAD_USER = "daemon", "nobody"
END_STATES = ("completed", "failed", "cancelled")
RUN_END_STATES = ("completed", "refused", "failed", "cancelled", "interrupted")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_until(condition, within, what, every=0.05):
    """Polls until condition() is true and returns its value; fails loudly at the deadline."""
    deadline = time.monotonic() + within
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"{what}: not within {within} s")
        time.sleep(every)


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self):
        return json.loads(self.body)


class Process:
    def __init__(self, name, argv, log, environment=None):
        self.name, self.log = name, log
        self.file = open(log, "ab")
        self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=self.file, stderr=self.file,
                                        env={**os.environ, **(environment or {})}, cwd="/", start_new_session=True)
        self.pid = self.process.pid

    def alive(self):
        return self.process.poll() is None

    def kill(self):
        """As kill -9 does: no chance to tidy up."""
        self.process.kill()
        self.process.wait(30)

    def stop(self, within=20):
        if self.alive():
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(within)
            except subprocess.TimeoutExpired:
                self.kill()
                raise AssertionError(f"{self.name} did not end within {within} s of SIGTERM")
        return self.process.returncode

    def log_text(self):
        return pathlib.Path(self.log).read_text(errors="replace")


class Rig:
    def __init__(self, postgres):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="perfrig-rig.", dir="/tmp"))
        self.folder.chmod(0o755)
        self.postgres = postgres
        self.database = "rig_" + uuid.uuid4().hex[:12]
        self.dsn = postgres.create_database(self.database)
        self.own_database = self.database
        self.token = uuid.uuid4().hex
        (self.folder / "token").write_text(self.token)
        (self.folder / "token").chmod(0o600)
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.controller = None
        self.agents = {}

    # --- programs ---------------------------------------------------------------------------------------------
    def start_controller(self, *arguments):
        self.controller = Process(
            "controller", [BIN / "perfrig-controller", "--listen", f"127.0.0.1:{self.port}", "--database", self.dsn,
                           "--admin-token-file", self.folder / "token", *arguments], self.folder / "controller.log")
        wait_until(self.healthy, 60, "the controller answers /healthz")
        return self.controller

    def healthy(self):
        if not self.controller.alive():
            raise AssertionError("the controller ended:\n" + self.controller.log_text()[-3000:])
        try:
            return self.call("GET", "/healthz", token=None).status == 200
        except OSError:
            return False

    def agent_folder(self, name):
        return self.folder / f"agent-{name}"

    def enrol(self, name="local", roles=None, share=None, metrics=False, extra=""):
        """Writes the agent's configuration and lets it join."""
        folder = self.agent_folder(name)
        folder.mkdir(mode=0o755)
        roles = roles or {"app": "0", "load": "1", "db": "1", "monitor": "1"}
        share = share if share is not None else [["db", "load", "monitor"]]
        lines = [f"controller: {self.url}", f"name: {name}", f"state_dir: {folder}/state",
                 f"metrics_listen: 127.0.0.1:{free_port()}"]
        if AM_ROOT:
            lines += [f"user: {AGENT_USER}", f"workload_user: {WORKLOAD_USER}"]
        lines += ["profile:", "  roles:", *(f'    {role}: "{cpus}"' for role, cpus in roles.items())]
        if share:
            lines += ["  share:", *(f"    - [{', '.join(group)}]" for group in share)]
        (folder / "agent.yaml").write_text("\n".join(lines) + "\n" + extra)
        (folder / "state").mkdir()
        if AM_ROOT:
            shutil.chown(folder / "state", AGENT_USER)
        joined = subprocess.run([BIN / "perfrig-agent", "join", self.url, "--config", folder / "agent.yaml"],
                                env={**os.environ, "PERFRIG_JOIN_TOKEN": self.make_token("join")}, capture_output=True,
                                text=True, timeout=60)
        assert joined.returncode == 0, joined.stdout + joined.stderr

    def beside(self):
        """A rig whose controller, once started, works on the same database with the same tokens."""
        other = Rig(self.postgres)
        other.database, other.dsn, other.token = self.database, self.dsn, self.token
        (other.folder / "token").write_text(self.token)
        return other

    def lead_agent_through(self, port, name="local"):
        """Its link goes by way of a proxy from its next start on."""
        config = self.agent_folder(name) / "agent.yaml"
        config.write_text(config.read_text().replace(f"controller: {self.url}", f"controller: http://127.0.0.1:{port}"))

    def start_agent(self, name="local", wait=True, **enrolment):
        folder = self.agent_folder(name)
        if not folder.exists():
            self.enrol(name, **enrolment)
        agent = Process(f"agent {name}", [BIN / "perfrig-agent", "run", "--config", folder / "agent.yaml"],
                        folder / "agent.log")
        self.agents[name] = agent
        if wait:
            self.wait_connected(name)
        return agent

    def wait_connected(self, name="local", within=60):
        def connected():
            agent = self.agents[name]
            if not agent.alive():
                raise AssertionError(f"agent {name} ended:\n" + agent.log_text()[-3000:])
            answer = self.call("GET", f"/api/v1/machines/{name}")
            return answer.status == 200 and answer.json["connected"]
        wait_until(connected, within, f"agent {name} is connected")

    def cli(self, *arguments, check=None, timeout=300, stdin=None):
        done = subprocess.run([BIN / "perfrig", "--url", self.url, "--token-file", self.folder / "token", *arguments],
                              input=stdin, capture_output=True, text=True, timeout=timeout)
        if check is not None:
            assert done.returncode == check, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    # --- REST -------------------------------------------------------------------------------------------------
    def call(self, method, target, body=None, headers=None, token="", timeout=60):
        """token: "" is the rig's own, None is no token at all."""
        request = urllib.request.Request(self.url + target, method=method)
        if token is not None:
            request.add_header("Authorization", f"Bearer {token or self.token}")
        for key, value in (headers or {}).items():
            request.add_header(key, value)
        if body is not None:
            request.data = body if isinstance(body, bytes) else body.encode()
            if not request.has_header("Content-type"):
                request.add_header("Content-Type", "application/yaml")
        try:
            with urllib.request.urlopen(request, timeout=timeout) as response:
                return Answer(response.status, response.headers, response.read())
        except urllib.error.HTTPError as error:
            return Answer(error.code, error.headers, error.read())

    def get(self, target):
        answer = self.call("GET", target)
        assert answer.status == 200, f"GET {target}: {answer.status} {answer.body[:2000]}"
        return answer.json

    def make_token(self, kind):
        answer = self.call("POST", "/api/v1/tokens", json.dumps({"kind": kind, "label": "test"}),
                           {"Content-Type": "application/json"})
        assert answer.status == 201, answer.body
        return answer.json["token"]

    def submit(self, text, query="", headers=None):
        answer = self.call("POST", f"/api/v1/submissions{query}", text, headers)
        assert answer.status in (200, 201), f"{answer.status} {answer.body.decode()}"
        return answer.json

    def runs(self, submission):
        return self.get(f"/api/v1/submissions/{submission}/runs?limit=1000")["items"]

    def wait_ended(self, submission, within=180):
        def ended():
            document = self.get(f"/api/v1/submissions/{submission}")
            return document if document["state"] in END_STATES and not document["current_runs"] else None
        try:
            return wait_until(ended, within, f"submission {submission} ends", every=0.2)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.report(submission)}")

    def wait_run_state(self, run, *states, within=60):
        def there():
            document = self.get(f"/api/v1/runs/{run}")
            if document["state"] in RUN_END_STATES and document["state"] not in states:
                raise AssertionError(f"run {run} is {document['state']}: {document['reason']}")
            return document if document["state"] in states else None
        return wait_until(there, within, f"run {run} is {'/'.join(states)}")

    def run(self, text, within=180, query=""):
        """Queues, waits for the end, returns (submission, [run details])."""
        submission = self.wait_ended(self.submit(text, query)["id"], within)
        return submission, [self.get(f"/api/v1/runs/{run['id']}") for run in self.runs(submission["id"])]

    def report(self, submission):
        out = [json.dumps(self.get(f"/api/v1/submissions/{submission}"))[:3000], json.dumps(self.runs(submission))[:3000]]
        out += ["controller: " + self.controller.log_text()[-3000:]]
        out += [f"{name}: " + agent.log_text()[-3000:] for name, agent in self.agents.items()]
        return "\n".join(out)

    def sql(self, query, *parameters):
        with self.postgres.connect(self.database) as connection, connection.cursor() as cursor:
            cursor.execute(query, parameters or None)
            return cursor.fetchall() if cursor.description else None

    # --- the machine ------------------------------------------------------------------------------------------
    def processes_left(self):
        """Command lines of living processes that lie in this rig's folder."""
        left = []
        for entry in pathlib.Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                    folder = os.readlink(entry / "cwd")
                    state = (entry / "stat").read_text().rsplit(")", 1)[1].split()[0]
                except (OSError, IndexError):
                    continue
                if state not in "ZX" and (str(self.folder) in line or folder.startswith(str(self.folder))):
                    left.append((int(entry.name), line or folder))
        return left

    def workload_left(self):
        """As processes_left, without controller and agents (their helpers included)."""
        return [(pid, line) for pid, line in self.processes_left() if "perfrig-agent" not in line and "perfrig-controller" not in line]

    def cgroups_left(self):
        found = []
        for base in ("/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/cpuset", "/sys/fs/cgroup/freezer"):
            found += [str(p) for p in pathlib.Path(base).glob("**/perfrig-*/run-*")]
        return sorted(set(found))

    def close(self):
        problems = []
        for process in [*self.agents.values(), self.controller]:
            if process is None:
                continue
            was_alive = process.alive()
            try:
                process.stop()
            except AssertionError as error:
                problems.append(str(error))
            text = process.log_text()
            for sign in ("AddressSanitizer", "LeakSanitizer", "runtime error:", "ThreadSanitizer"):
                if sign in text:
                    at = text.index(sign)
                    problems.append(f"{process.name} has a sanitizer report:\n{text[max(0, at - 500):at + 4000]}")
                    break
            if was_alive and process.process.returncode not in (0, -signal.SIGTERM):
                problems.append(f"{process.name} ended with {process.process.returncode}:\n{text[-2000:]}")
        try:
            wait_until(lambda: not self.processes_left(), 20, "every process has ended")
        except AssertionError:
            problems.append(f"left running: {self.processes_left()}")
        shutil.rmtree(self.folder, ignore_errors=True)
        try:
            self.postgres.drop_database(self.own_database)
        except Exception as error:
            problems.append(f"its database stays: {error}")
        assert not problems, "\n".join(problems)
