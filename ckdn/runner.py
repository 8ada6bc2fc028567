"""Runs one command under its guardian and streams its output into the run's log. No shell, no polling, no threads.

:func:`run` may be called from many threads at once: it keeps no global state and never forks this process. Where the
tree is stopped (timeout, interrupt, a bound passed), the order is TERM, ``grace``, KILL, and it reaches ``setsid``
children too; see :mod:`ckdn.guardian`. On Windows :func:`run` refuses: a job object is not built yet.
"""

# pathlib and contextlib cost more to import than a run of this module:
# ruff: noqa: SIM105
from __future__ import annotations

import errno
import os
import select
import sys
import time

from ckdn.errors import CkdnError, ExitCode, Problem
from ckdn.model import Ending, Struct

if sys.platform != "win32":
    import fcntl

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable, Mapping
    from types import FrameType, TracebackType
    from typing import Any, Protocol

    class Hash(Protocol):
        def update(self, data: bytes | memoryview, /) -> None: ...
        def hexdigest(self) -> str: ...
else:
    try:
        import _signal as signal  # signal itself adds enum: 4 ms
    except ImportError:  # an interpreter that builds it otherwise
        import signal

PIPE_BYTES = 1 << 20
"""What a log pipe should hold."""

READ_BYTES = 1 << 17
"""The most that is read at once; more is not faster."""

HASH_LATER_BYTES = 1 << 18
"""A log up to this size is hashed by the interpreter's own sha256; OpenSSL's is 5 times faster and 2 ms to load."""

STOP_MARGIN_S = 5.0
"""How long after KILL a tree may stay before ckdn goes on without it (a process stuck in the kernel)."""

FIRST_FREE_FD = 5
"""The guardian's own descriptors are 0 to 4."""


class Command(Struct):
    """One command to run."""

    argv: tuple[str, ...]
    """At least the program: looked up on the PATH of ``env`` when it has no slash, else from ``cwd``."""
    cwd: str
    env: dict[str, str]
    """The whole environment of the command; see :func:`child_environment`."""
    log_dir: str
    """Where ``full.log`` goes; must exist."""
    timeout: float | None = None
    """Seconds."""
    grace: float = 2.0
    """Seconds between TERM and KILL."""
    max_log_bytes: int = 1 << 30
    split_streams: bool = False
    """Write ``stdout.log`` and ``stderr.log`` as well; then their lines mix in ``full.log`` only about in order."""


class Outcome(Struct):
    """How one command went. Its output is in the log files."""

    ending: Ending
    started_at: str
    """UTC, ``2026-12-01T02:01:50.123Z``."""
    duration_s: float
    """From the command's start to its end, or to the end of its whole tree when it had to be stopped."""
    log_bytes: int
    """The size of ``full.log``."""
    log_sha256: str
    """Of ``full.log``."""
    survivors: tuple[str, ...]
    """``name[pid]`` of what was alive after the command's own end; the guardian stops these."""
    notes: tuple[str, ...]
    """What else went wrong on the way, one sentence each; almost always empty."""


def child_environment(base: Mapping[str, str], overlay: Mapping[str, str], run_dir: str) -> dict[str, str]:
    """The environment of a check's command: ``base``, then ``overlay``, then what ckdn sets.

    ``PYTHONUNBUFFERED`` and ``NO_COLOR`` are 1 unless set already, even to nothing; ``CKDN_RUN_DIR`` is ``run_dir``.
    """
    env = {**base, **overlay}
    env.setdefault("PYTHONUNBUFFERED", "1")
    env.setdefault("NO_COLOR", "1")
    env["CKDN_RUN_DIR"] = run_dir
    return env


def signal_name(signum: int) -> str:
    """``SIGSEGV`` for 11; ``signal 40`` for one without a name."""
    for name in dir(signal):
        if name.startswith("SIG") and name[3] != "_" and name != "SIGCLD" and getattr(signal, name) == signum:
            return name
    return f"signal {signum}"


class Interrupts:
    """INT, TERM and HUP as something to wait for; shared by all the runs of one process.

    A context object. While open, a first signal makes :attr:`stop_fd` readable, for good, and stands in
    :attr:`signum`; a second one does the same to :attr:`kill_fd`: stop at once. Signals that are ignored (``nohup``)
    stay ignored. Python takes handlers in the main thread only: elsewhere, and wherever another owner has them, say
    ``install=False``; then only :meth:`request` counts.
    """

    def __init__(self, install: bool = True) -> None:
        self.signum = 0
        """The first signal; 0 when there was none."""
        self.stop_fd, self._stop = _pipe()
        self.kill_fd, self._kill = _pipe()
        self._before: dict[int, Any] = {}
        if install:
            for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                before = signal.getsignal(signum)
                if before not in (signal.SIG_IGN, None):  # None: a handler from outside Python, not ours to replace
                    signal.signal(signum, self._handle)
                    self._before[signum] = before

    def _handle(self, signum: int, _frame: FrameType | None) -> None:
        self.request(signum)

    def request(self, signum: int) -> None:
        """As if the signal had come; from any thread."""
        if not self.signum:
            self.signum = signum
            os.write(self._stop, b"!")
        else:
            os.write(self._kill, b"!")

    def close(self) -> None:
        """Put the old handlers back. No :func:`run` may still use this object."""
        for signum, before in self._before.items():
            signal.signal(signum, before)
        self._before = {}
        for fd in (self.stop_fd, self._stop, self.kill_fd, self._kill):
            os.close(fd)

    def __enter__(self) -> Interrupts:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def run(command: Command, stop: Interrupts | None = None) -> Outcome:
    """Run the command to its end and return how it ended; a tool that fails is a result, never an exception.

    Raises CkdnError when ckdn itself cannot do its part: the log cannot be created, the guardian cannot be started.
    """
    if sys.platform == "win32":
        raise CkdnError(Problem("ckdn cannot run commands on Windows yet", mend="use WSL"))
    log = Log(command)
    try:
        return _Run(command, stop, log).outcome()
    finally:
        log.close()


class Log:
    """The log files of one run, bounded, with the size and the sha256 of ``full.log``."""

    def __init__(self, command: Command) -> None:
        self.size = 0
        self.failure = ""
        """Why the log is not whole; nothing is written after that."""
        self._bound = command.max_log_bytes
        self._held: list[bytes] = []
        self._hash: Hash | None = None
        self._path = os.path.join(command.log_dir, "full.log")
        self._full = _create(command.log_dir, "full.log")
        self._streams = [-1, -1]
        if command.split_streams:
            self._streams = [_create(command.log_dir, name) for name in ("stdout.log", "stderr.log")]

    def write(self, chunk: memoryview, stream: int) -> None:
        """Append what came from stdout (0) or stderr (1)."""
        if self.failure:
            return
        room = self._bound - self.size
        whole = len(chunk) <= room
        if not whole:
            chunk = chunk[:room]
        try:
            if self._streams[stream] >= 0:
                _write_all(self._streams[stream], chunk)
            _write_all(self._full, chunk)
        except OSError as error:
            self.failure = f"the log could not be written: {error.strerror}"
            return
        self.size += len(chunk)
        self._digest(chunk)
        if not whole:
            self.failure = f"log passed the bound of {self._bound} bytes"

    def _digest(self, chunk: memoryview) -> None:
        if self._hash is None:
            self._held.append(bytes(chunk))
            if self.size <= HASH_LATER_BYTES:
                return
            import hashlib  # only a large log earns it back

            self._hash = hashlib.sha256()
            for held in self._held:
                self._hash.update(held)
            self._held = []
        else:
            self._hash.update(chunk)

    def compare(self) -> None:
        """Note when ``full.log`` is no longer what was written: the command knows where it is, and may have emptied or
        replaced it. What a spec reads there then proves nothing."""
        if self.failure or self._full < 0:
            return
        try:
            ours, there = os.fstat(self._full), os.lstat(self._path)
            same = (ours.st_dev, ours.st_ino, ours.st_size) == (there.st_dev, there.st_ino, self.size)
        except OSError:
            same = False
        if not same:
            self.failure = "the log was changed while the command ran"

    def sha256(self) -> str:
        if self._hash is None:
            self._hash = _small_sha256()
            for held in self._held:
                self._hash.update(held)
        return self._hash.hexdigest()

    def close(self) -> None:
        for fd in (self._full, *self._streams):
            if fd >= 0:
                try:
                    os.close(fd)
                except OSError as error:  # a quota or a network disk may say so only now
                    self.failure = self.failure or f"the log could not be written: {error.strerror}"
        self._full, self._streams = -1, [-1, -1]


def _small_sha256() -> Hash:
    for name in ("_sha2", "_sha256"):  # 3.12 renamed it
        try:
            made: Hash = __import__(name).sha256()
            return made
        except ImportError:
            pass
    import hashlib  # an interpreter without its own

    return hashlib.sha256()


def _create(folder: str, name: str) -> int:
    path = os.path.join(folder, name)
    try:
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise CkdnError(Problem(f"cannot write {path}: {error.strerror}")) from error


def _write_all(fd: int, chunk: memoryview) -> None:
    while chunk:
        chunk = chunk[os.write(fd, chunk) :]


def _pipe() -> tuple[int, int]:
    """A close-on-exec pipe, away from the guardian's own descriptor numbers: ckdn may run with stdin closed."""
    ends = []
    for fd in os.pipe():
        if fd < FIRST_FREE_FD:
            moved = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, FIRST_FREE_FD)
            os.close(fd)
            fd = moved
        ends.append(fd)
    return ends[0], ends[1]


class _Run:
    """One command on its way: the guardian's descriptors, the log pipes, and a loop that waits on all of them."""

    def __init__(self, command: Command, stop: Interrupts | None, log: Log) -> None:
        self.command = command
        self.stop = stop
        self.log = log
        self.pid = 0
        self.exit: int | None = None
        self.over = False
        """The guardian has said its last word, or no more is expected of it."""
        self.cause: Ending | None = None
        """Why ckdn stopped the command or could not start it; its rc is final unless it is 0."""
        self.survivors: tuple[str, ...] = ()
        self.notes: list[str] = []
        self._status = b""
        self._poll = select.poll()
        self._ready: dict[int, Callable[[], None]] = {}
        self._started = self._ended = time.monotonic()
        self._deadline = None if command.timeout is None else self._started + command.timeout
        self._buffer = memoryview(bytearray(READ_BYTES))

    def outcome(self) -> Outcome:
        wall = time.time_ns()
        if self.stop is not None and self.stop.signum:
            self._interrupted()  # before anything was started
        else:
            try:
                request = _request(self.command)
            except ValueError as error:
                self.cause = Ending(rc=ExitCode.NOT_EXECUTABLE, failure=f"cannot start: {error}")
            else:
                self._watch(request)
        self.log.compare()
        self.log.close()
        if self.log.failure and self.cause is None:
            self.cause = Ending(rc=0, failure=self.log.failure)
        seconds, milliseconds = divmod(wall // 1_000_000, 1000)
        return Outcome(
            ending=self._ending(),
            started_at=time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{milliseconds:03d}Z",
            duration_s=self._ended - self._started,
            log_bytes=self.log.size,
            log_sha256=self.log.sha256(),
            survivors=self.survivors,
            notes=tuple(self.notes),
        )

    def _ending(self) -> Ending:
        rc = -signal.SIGKILL if self.exit is None else self.exit
        if self.cause is not None:
            self.cause.rc = self.cause.rc or rc
            return self.cause
        return Ending(rc=rc, failure=f"killed by {signal_name(-rc)}" if rc < 0 else "")

    def _watch(self, request: bytes) -> None:
        guardian = Guardian(self.command.split_streams)
        try:
            for stream, fd in enumerate(guardian.logs):
                self._wait_for(fd, lambda fd=fd, stream=stream: self._read_log(fd, stream))  # type: ignore[misc]
            self._wait_for(guardian.status, lambda: self._read_status(guardian))
            if self.stop is not None:
                self._wait_for(self.stop.stop_fd, lambda: self._read_stop(guardian))
            guardian.tell(request)
            while not self.over:
                self._step(guardian)
            if self.exit is None or self.cause is not None:
                self._ended = time.monotonic()
            for stream, fd in enumerate(guardian.logs):
                self._drain(fd, stream, guardian.capacity)
        finally:
            guardian.close(leave=bool(self.survivors or self.notes or not self.over))

    def _wait_for(self, fd: int, handle: Callable[[], None]) -> None:
        self._ready[fd] = handle
        self._poll.register(fd, select.POLLIN)

    def _ignore(self, fd: int) -> None:
        del self._ready[fd]
        self._poll.unregister(fd)

    def _step(self, guardian: Guardian) -> None:
        """Wait for the next event, or for the deadline, and act on it."""
        wait = None
        if self._deadline is not None:
            # poll's limit is 24 days; a longer wait goes round again
            wait = min(max(0.0, self._deadline - time.monotonic()) * 1000, 86_400_000.0)
        for fd, _ in self._poll.poll(wait):
            if fd in self._ready:
                self._ready[fd]()
        if self.log.failure and self.cause is None:
            self._stop_for(Ending(rc=0, failure=self.log.failure), guardian)
        if not self.over and self._deadline is not None and time.monotonic() >= self._deadline:
            self._expired(guardian)

    def _expired(self, guardian: Guardian) -> None:
        if self.cause is None and self.exit is None:
            text = f"timed out after {self.command.timeout:g} s"
            self._stop_for(Ending(rc=ExitCode.TIMEOUT, failure=text, timed_out=True), guardian)
        else:
            self.notes.append(f"the command's processes were not gone {STOP_MARGIN_S:g} s after the last signal")
            self.over = True
            # The guardian itself may hang: a command can stop its parent. Then nobody else would ever kill the rest.
            if not kill_all(self.pid, guardian.pid, self.command.env.get("CKDN_RUN_DIR", "")):
                self.notes.append("some of them could not be killed")

    def _stop_for(self, cause: Ending, guardian: Guardian) -> None:
        self.cause = cause
        self._deadline = time.monotonic() + self.command.grace + STOP_MARGIN_S
        guardian.tell(b"S")

    def _interrupted(self) -> None:
        assert self.stop is not None
        signum = self.stop.signum
        self.cause = Ending(rc=128 + signum, failure=f"interrupted by {signal_name(signum)}", interrupted=True)

    def _read_stop(self, guardian: Guardian) -> None:
        """The first interrupt stops the tree, a second one kills it. A command that has ended keeps its result."""
        assert self.stop is not None
        self._ignore(self.stop.stop_fd)
        self._wait_for(self.stop.kill_fd, lambda: self._read_kill(guardian))
        if self.exit is None and self.cause is None:
            self._interrupted()
            assert self.cause is not None
            self._stop_for(self.cause, guardian)

    def _read_kill(self, guardian: Guardian) -> None:
        assert self.stop is not None
        self._ignore(self.stop.kill_fd)
        guardian.tell(b"K")

    def _read_log(self, fd: int, stream: int) -> None:
        size = os.readv(fd, [self._buffer])
        if size:
            self.log.write(self._buffer[:size], stream)
        else:
            self._ignore(fd)

    def _drain(self, fd: int, stream: int, capacity: int) -> None:
        """Read what was written before the end: at most a full pipe, since a survivor may write for ever."""
        while capacity > 0 and fd in self._ready:
            try:
                size = os.readv(fd, [self._buffer[:capacity]])
            except BlockingIOError:
                return
            if not size:
                return
            self.log.write(self._buffer[:size], stream)
            capacity -= size

    def _read_status(self, guardian: Guardian) -> None:
        data = os.read(guardian.status, 65536)
        if not data:
            self._ignore(guardian.status)
            if not self.over:
                self._guardian_died(guardian)
            return
        *lines, self._status = (self._status + data).split(b"\n")
        for line in lines:
            word, *rest = line.split()
            if word == b"started":
                self.pid = int(rest[0])
                if self.cause is None:
                    self._started = time.monotonic()
                    self._deadline = None if self.command.timeout is None else self._started + self.command.timeout
            elif word == b"exit":
                self.exit = int(rest[0])
                if self.cause is None:
                    self._ended = time.monotonic()
                    self._deadline = self._ended + STOP_MARGIN_S
            elif word == b"left":
                self._left(rest)
            elif word == b"failed":
                self.over = True
                self.cause = cannot_start(
                    self.command, int(rest[0]), rest[1], bytes.fromhex(b"".join(rest[2:]).decode())
                )

    def _left(self, names: list[bytes]) -> None:
        self.over = True
        shown = tuple(printable(bytes.fromhex(name.decode())) for name in names)
        if self.exit is None or self.cause is not None:
            if shown:
                self.notes.append("could not be stopped: " + ", ".join(shown))
        else:
            self.survivors = shown

    def _guardian_died(self, guardian: Guardian) -> None:
        """Somebody killed it, or it could not run: then the command must not run on unwatched."""
        self.over = True
        # The guardian's pid stays its session's number until it is collected.
        kill_all(self.pid, guardian.pid, self.command.env.get("CKDN_RUN_DIR", ""))
        code = guardian.collect()
        if self.exit is not None:
            self.notes.append("the guardian process was killed: what outlived the command is not known")
        elif self.cause is None and not self.pid and code >= 0:
            text = "cannot start: the guardian process failed, the log may say why"
            self.cause = Ending(rc=ExitCode.NOT_EXECUTABLE, failure=text)
        elif self.cause is None:
            self.cause = Ending(rc=0, failure="the guardian process was killed, and the command with it")


def kill_all(command: int, guardian: int, run_dir: str) -> bool:
    """KILL the command's tree and its guardian from here; False when something of it may not be killed.

    Orphans no longer lead to a dead guardian: on Linux they are found by the ``CKDN_RUN_DIR`` in their environment.
    """
    from ckdn.guardian import Tree  # only where a guardian does not do its work

    done = Tree(command, subreaper=False, root=guardian).send(signal.SIGKILL)
    if sys.platform == "linux" and run_dir:
        done = _kill_marked(os.fsencode(f"CKDN_RUN_DIR={run_dir}")) and done
    try:
        os.kill(guardian, signal.SIGKILL)
    except ProcessLookupError:  # it is a child of ours that is not collected, so its number is not another's
        pass
    return done


def _kill_marked(mark: bytes) -> bool:
    """KILL every process with this entry in its environment, until a look finds no new one."""
    done = True
    killed = {os.getpid()}
    while True:
        fresh = [pid for pid in _marked(mark) if pid not in killed]
        if not fresh:
            return done
        for pid in fresh:
            killed.add(pid)
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            except PermissionError:
                done = False


def _marked(mark: bytes) -> list[int]:
    """The processes that have this entry in their environment, as far as we may see it."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/environ", "rb") as file:
                    entries = file.read().split(b"\0")
            except OSError:  # another user's, or it has ended
                continue
            if mark in entries:
                found.append(int(name))
    return found


class Guardian:
    """The guardian process as ckdn sees it."""

    def __init__(self, split: bool) -> None:
        if not sys.executable:
            raise CkdnError("ckdn cannot find its own Python interpreter to start a guardian process with")
        control, self._control = _pipe()
        self.status, status = _pipe()
        writers = []
        self.logs = []
        for _ in range(2 if split else 1):
            reading, writing = _pipe()
            os.set_blocking(reading, False)
            self.logs.append(reading)
            writers.append(writing)
        self.capacity = min(_enlarge(fd) for fd in writers)
        actions = [
            (os.POSIX_SPAWN_DUP2, writers[0], 1),
            (os.POSIX_SPAWN_DUP2, writers[-1], 2),
            (os.POSIX_SPAWN_DUP2, control, 3),
            (os.POSIX_SPAWN_DUP2, status, 4),
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        ]
        try:
            self.pid = _spawn(actions)
        except OSError as error:
            self._close()
            raise CkdnError(Problem(f"cannot start {sys.executable}: {error.strerror}")) from error
        finally:
            for fd in (control, status, *writers):
                os.close(fd)

    def tell(self, order: bytes) -> None:
        """Send the request or an order; a guardian that is gone shows on its status pipe."""
        view = memoryview(order)
        try:
            _write_all(self._control, view)
        except BrokenPipeError:
            pass

    def close(self, leave: bool) -> None:
        """Let go of it: it ends now, or, with ``leave``, when it has done what is left to do."""
        self._close()
        if leave:
            import _thread  # a zombie must not stay in a long-lived process, and ckdn must not wait

            _thread.start_new_thread(self.collect, ())
        else:
            self.collect()

    def collect(self) -> int:
        """Wait for its end; its exit code, or minus its signal, once."""
        pid, self.pid = self.pid, 0
        try:
            return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) if pid else 0
        except ChildProcessError:  # the parent of ckdn made it ignore SIGCHLD
            return -signal.SIGKILL

    def _close(self) -> None:
        for fd in (self._control, self.status, *self.logs):
            os.close(fd)


def _spawn(actions: list[Any]) -> int:
    """Start the guardian in a session of its own, so that a terminal's Ctrl-C does not reach it."""
    # Imported by name from ckdn's own folder: this finds the compiled module beside it, and works from a zip as well.
    argv = [sys.executable, "-I", "-S", "-c", "import sys;sys.path.append(sys.argv[1]);import guardian;guardian.main()"]
    if sys.dont_write_bytecode or sys.pycache_prefix:
        argv.insert(1, "-B")
    argv.append(os.path.dirname(os.path.abspath(__file__)))
    try:
        return os.posix_spawn(argv[0], argv, os.environ, file_actions=actions, setsid=True, setsigmask=())
    except NotImplementedError:  # not everywhere; the guardian then does it itself, a little later
        return os.posix_spawn(argv[0], argv, os.environ, file_actions=actions, setsigmask=())


def _enlarge(fd: int) -> int:
    """Make the pipe hold PIPE_BYTES where the system lets us; what it holds now."""
    if sys.platform == "linux":
        try:
            fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        except OSError:  # the user's share of pipe memory is spent
            pass
        return fcntl.fcntl(fd, fcntl.F_GETPIPE_SZ)
    return 65536


def _request(command: Command) -> bytes:
    """The message to the guardian; ValueError when the system has no way to pass something on."""
    if not command.argv or not command.argv[0]:
        raise ValueError("the command is empty")
    pairs = []
    for key, value in command.env.items():
        if not key or "=" in key:
            raise ValueError(f"{key!r} is no name for an environment variable")
        pairs.append(f"{key}={value}")
    fields = [command.cwd, str(int(command.grace * 1000)), str(len(command.argv)), *command.argv, *pairs]
    if any("\0" in field for field in fields):
        raise ValueError("an argument or a variable contains a NUL character")
    message = b"\0".join([os.fsencode(field) for field in fields])
    return len(message).to_bytes(8, "big") + message


def cannot_start(command: Command, number: int, step: bytes, place: bytes) -> Ending:
    """The ending for a failed start: errno ``number`` at ``step`` (``cwd`` or ``exec``), for the file ``place``."""
    name = command.argv[0]
    path = os.path.join(os.fsencode(command.cwd), place)
    if step == b"cwd":
        rc, why = ExitCode.NOT_EXECUTABLE, f"the working directory {command.cwd}: {os.strerror(number)}"
    elif not place:
        rc, why = ExitCode.NOT_FOUND, f"{name} not found (not on the command's PATH)"
    elif number in (errno.ENOENT, errno.ENOTDIR) and not os.path.lexists(path):
        rc, why = ExitCode.NOT_FOUND, f"{name} not found (no such file)"
    elif number == errno.ENOENT:
        rc, why = ExitCode.NOT_EXECUTABLE, f"{name}: {_missing_part(path)}"
    elif number == errno.ENOEXEC:
        rc, why = ExitCode.NOT_EXECUTABLE, f"{name} is neither a program for this machine nor a script with a #! line"
    elif number == errno.EACCES and os.path.isdir(path):
        rc, why = ExitCode.NOT_EXECUTABLE, f"{name} is a folder"
    elif number == errno.EACCES:
        rc, why = ExitCode.NOT_EXECUTABLE, f"{name} is not executable (permission denied)"
    elif number == errno.E2BIG:
        rc, why = ExitCode.NOT_EXECUTABLE, f"{name}: the arguments and the environment are too long for this system"
    else:
        rc, why = ExitCode.NOT_EXECUTABLE, f"{name}: {os.strerror(number)}"
    return Ending(rc=rc, failure=f"cannot start: {why}")


def _missing_part(path: bytes) -> str:
    """Why a file that is there cannot be found by the system."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return "a dangling link"
    try:
        first = os.read(fd, 256).split(b"\n")[0]
    finally:
        os.close(fd)
    if first.startswith(b"#!"):
        return f"its interpreter {printable(first[2:].strip().split(b' ')[0])} does not exist"
    return "the loader or library it needs does not exist"


def printable(name: bytes) -> str:
    """A name that somebody else chose, as text without control characters."""
    return "".join(c if c.isprintable() else "?" for c in name.decode("utf-8", "replace"))
