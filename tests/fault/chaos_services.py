"""The servers of a chaos run: a broker, and a cluster on a disk of its own that can be filled and set back."""

import contextlib
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import psycopg2

import servers
from waiting import wait_for

MIB = 1 << 20
BALLAST = "ballast"
TRIES = 5
PLENTY = 4


def call(*argv, timeout=300, **options):
    """Run a command; raises with what it said."""
    done = subprocess.run(
        [str(each) for each in argv],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=timeout,
        check=False,
        **options,
    )
    if done.returncode != 0:
        raise RuntimeError(f"{argv} ended with {done.returncode}: {done.stdout.strip()[-500:]}")
    return done.stdout


def available_mebibytes():
    """Memory that can be had now."""
    for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) // 1024
    return 0


class Disk:
    """A small file system: in memory where there is plenty, else on a loop device; only root can have one."""

    def __init__(self, directory, mebibytes):
        self.directory = Path(directory)
        self.directory.mkdir(parents=True)
        self.image = self.directory.with_suffix(".image")
        self.mounted = os.geteuid() == 0 and ((self._memory(mebibytes) or self._loop(mebibytes)))
        self.directory.chmod(0o755)

    def _loop(self, mebibytes):
        try:
            with open(self.image, "wb") as image:
                image.truncate(mebibytes * MIB)
            call("mkfs.ext4", "-q", "-m", "0", "-O", "^has_journal", self.image)
            call("mount", "-o", "loop", self.image, self.directory)
            return True
        except (RuntimeError, OSError):
            self.image.unlink(missing_ok=True)
            return False

    def _memory(self, mebibytes):
        if available_mebibytes() < PLENTY * mebibytes:
            return False
        try:
            call("mount", "-t", "tmpfs", "-o", f"size={mebibytes}m,mode=755", "chaos", self.directory)
            return True
        except (RuntimeError, OSError):
            return False

    def fill(self):
        """Not a byte is left."""
        handle = os.open(self.directory / BALLAST, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            piece = b"\xa5" * MIB
            while piece:
                try:
                    os.write(handle, piece)
                except OSError:
                    piece = piece[: len(piece) // 2]
        finally:
            os.close(handle)

    def free(self):
        """There is room again."""
        (self.directory / BALLAST).unlink(missing_ok=True)

    def close(self):
        """Unmount; what is on it is gone."""
        if self.mounted:
            with contextlib.suppress(RuntimeError):
                call("umount", "-l", self.directory)
        self.image.unlink(missing_ok=True)


class Database(servers.Postgres):
    """A cluster that is killed, stopped, paused, filled up and set back to an older base backup."""

    def __init__(self, directory, backups, disk=None):
        super().__init__(Path(directory))
        self.disk = disk
        self.backups_directory = Path(backups)
        self.backups_directory.mkdir(mode=0o755)
        self.backups = []  # (when, directory)
        self.owner = None

    def start(self):
        """It may need a second trial: something may still hold a port or a lock file."""
        for left in range(TRIES - 1, -1, -1):
            try:
                super().start()
                break
            except (RuntimeError, servers.Unavailable):
                if left == 0:
                    raise
                with contextlib.suppress(RuntimeError):
                    self.kill()
                time.sleep(1)
        self.wait_until_ready()
        return self

    def first_start(self, **settings):
        """The first one, and once more with these settings."""
        super().start()
        self.owner = self.data.stat().st_uid, self.data.stat().st_gid
        self.configure(**settings)
        self.stop()
        return self.start()

    def configure(self, **settings):
        """Add to postgresql.conf; it counts from the next start."""
        with open(self.data / "postgresql.conf", "a", encoding="utf-8") as conf:
            conf.writelines(f"{name} = '{value}'\n" for name, value in settings.items())

    def answers(self):
        """Whether it may be written to."""
        try:
            self.execute("CREATE TEMPORARY TABLE t ()")
            return True
        except psycopg2.Error:
            return False

    def wait_until_ready(self):
        """Recovery is over."""
        wait_for(self.answers, "PostgreSQL to answer", 120)

    def pid(self):
        """The postmaster's."""
        return int((self.directory / "postgres.pid").read_text())

    def signal_all(self, number):
        """To the postmaster and its children."""
        postmaster = self.pid()
        for pid in [postmaster, *children_of(postmaster)]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def backup(self, keep=3):
        """A base backup, taken while everybody works."""
        path = self.backups_directory / f"{time.time():.0f}"
        binaries = call("sh", "-c", "ls -d /usr/lib/postgresql/*/bin | sort -V | tail -n 1").strip()
        call(
            f"{os.environ.get('FERMATA_PG_BIN') or binaries}/pg_basebackup",
            *("-d", self.dsn, "-D", path, "-X", "stream", "-c", "fast", "--no-sync"),
        )
        self.backups.append((time.monotonic(), path))
        while len(self.backups) > keep:
            shutil.rmtree(self.backups.pop(0)[1], ignore_errors=True)

    def restore(self, which, **settings):
        """As it was when a backup was taken; returns how old that is, in seconds. With settings there is WAL to be
        read after it: they say where from, and up to where."""
        taken, path = self.backups[which % len(self.backups)]
        with contextlib.suppress(RuntimeError):
            self.kill()
        for entry in self.data.iterdir():
            shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()
        call("cp", "-a", f"{path}/.", self.data)
        if settings:
            self.configure(**settings)
            (self.data / "recovery.signal").touch()
        call("chown", "-R", f"{self.owner[0]}:{self.owner[1]}", self.data)
        self.start()
        return time.monotonic() - taken


def children_of(parent):
    """The pids of a process's children."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, IndexError, ValueError):
            if int(stat.read_text().rsplit(")", 1)[1].split()[1]) == parent:
                found.append(int(stat.parent.name))
    return found


class Broker(servers.Kafka):
    """A broker that is killed, restarted and paused."""

    def pid(self):
        """Of its one process."""
        return int((self.directory / "kafka.pid").read_text())

    def pause(self):
        """SIGSTOP."""
        os.kill(self.pid(), signal.SIGSTOP)

    def go_on(self):
        """SIGCONT."""
        with contextlib.suppress(ProcessLookupError, OSError, ValueError):
            os.kill(self.pid(), signal.SIGCONT)
