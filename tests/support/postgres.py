"""A private PostgreSQL cluster for a test: on a Unix socket, as an unprivileged user, gone with the test."""
import glob
import os
import pathlib
import shutil
import subprocess
import tempfile


def bin_folder():
    for pattern in ("/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/usr/bin"):
        for folder in sorted(glob.glob(pattern), reverse=True):
            if os.access(f"{folder}/initdb", os.X_OK):
                return folder
    raise FileNotFoundError("initdb: install PostgreSQL's server")


class Postgres:
    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="perfrig-pg.", dir="/tmp"))
        self.bin = bin_folder()
        self.prefix = []
        if os.getuid() == 0:  # PostgreSQL refuses to run as root
            self.prefix = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", "--"]
            shutil.chown(self.folder, "nobody", "nogroup")
        self._run("initdb", "-D", f"{self.folder}/data", "-U", "perfrig", "-A", "trust", "--no-sync")
        self.dsn = f"host={self.folder} user=perfrig dbname=postgres"
        self.start()

    def _run(self, program, *arguments):
        subprocess.run([*self.prefix, f"{self.bin}/{program}", *arguments], check=True, stdin=subprocess.DEVNULL,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=120)

    def start(self):
        self._run("pg_ctl", "-D", f"{self.folder}/data", "-w", "-t", "60", "-l", f"{self.folder}/log", "-o",
                  f"-c listen_addresses= -c unix_socket_directories={self.folder} -c fsync=off -c max_connections=200", "start")

    def stop(self, mode="fast"):
        self._run("pg_ctl", "-D", f"{self.folder}/data", "-m", mode, "-w", "stop")

    def connect(self, database=None):
        import psycopg2

        connection = psycopg2.connect(self.dsn if database is None else self.dsn.replace("dbname=postgres", f"dbname={database}"))
        connection.autocommit = True
        return connection

    def _execute(self, statement):
        connection = self.connect()  # not "with": that begins a transaction, in which no database can be made or dropped
        try:
            connection.cursor().execute(statement)
        finally:
            connection.close()

    def drop_database(self, name):
        self._execute(f'drop database if exists "{name}" with (force)')

    def create_database(self, name):
        self._execute(f'create database "{name}"')
        return self.dsn.replace("dbname=postgres", f"dbname={name}")

    def close(self):
        try:
            self.stop("immediate")
        except subprocess.SubprocessError:
            pass
        shutil.rmtree(self.folder, ignore_errors=True)
