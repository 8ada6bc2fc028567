"""The guardian: a small process between ckdn and one command, so that the command's whole process tree can be stopped.

ckdn may be killed by ``kill -9`` at any instant; then nobody is left to stop the command, unless another process is
there already. This is that process. It runs in its own session, is the *subreaper* of everything below it (Linux:
orphans come to it, so double-forked and ``setsid`` children stay in its reach), and lives as long as the tree does.

:mod:`ckdn.runner` starts it with ``python -I -S`` and five descriptors, no other is kept:

====  =====================================================================================================
0     ``/dev/null``, the command's stdin
1, 2  the log pipe or pipes; only the command and its children hold them once it runs
3     control, from ckdn: a length (8 bytes, big endian) and that many bytes of request, then single bytes:
      ``S`` stop the tree (TERM, grace, KILL), ``K`` kill it now. End of file means ckdn is gone or has its
      result: stop what is left.
4     status, to ckdn, one line each: ``started PID``; or ``failed ERRNO STEP HEX``, and that is all; then
      ``exit CODE`` (``-N`` for signal N) when the command has ended; ``left HEX…`` names what is still
      alive then (``name[pid]``) and ends the result. The guardian stops the survivors after that, alone.
====  =====================================================================================================

The request is NUL-separated: cwd, grace in milliseconds, the number of arguments, the arguments, ``KEY=VALUE``…

Waiting is by events alone: SIGCHLD through a wake-up pipe, and the control pipe. Every import here is paid by every
run, so this uses ``posix`` instead of ``os`` and ``_signal`` instead of ``signal`` (1 ms and 4 ms of 7).

Where there is no subreaper (macOS, BSD), the command's process group and the guardian's session stand for the tree: a
child that made its own session and outlived its parent is missed there. That path is not tested. Windows has no
guardian.
"""

from __future__ import annotations

import errno
import posix
import select
import sys
from time import monotonic

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Iterator
else:
    try:
        import _signal as signal
    except ImportError:  # an interpreter that builds it otherwise
        import signal

CONTROL = 3
STATUS = 4
PR_SET_CHILD_SUBREAPER = 36
PF_EXITING = 0x4

SETTLE_S = 0.05
"""How long what outlives the command may take to end by itself before it is called a survivor.

The remains of a shell pipeline or of ``> >(tee log)`` need a moment to see their end of file, and what they still write
belongs to the log. The wait ends with the last of them, and does not happen when nothing is left."""

RUNNING, SETTLING, TERMED, KILLED = range(4)


def become_subreaper() -> bool:
    """Make orphans below this process its children; False where the system cannot."""
    if sys.platform != "linux":
        return False
    try:
        import _ctypes  # what ctypes itself calls, without its 2 ms of Python

        itself = _ctypes.dlopen(None, 0)  # type: ignore[arg-type]
        prctl = _ctypes.dlsym(itself, "prctl")
        return bool(_ctypes.call_cdeclfunction(prctl, (PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)) == 0)
    except (ImportError, AttributeError, OSError):
        pass
    try:
        import ctypes  # an interpreter without the private module

        return bool(ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)
    except (ImportError, AttributeError, OSError):
        return False


class Process:
    """What the system tells of one process."""

    __slots__ = ("alive", "group", "name", "parent", "pid", "session")

    def __init__(self, stat: bytes) -> None:
        """From the bytes of ``/proc/PID/stat``; the name in it may hold spaces and parentheses."""
        head, _, tail = stat.rpartition(b")")
        number, _, self.name = head.partition(b" (")
        fields = tail.split()
        self.pid = int(number)
        self.parent, self.group, self.session = int(fields[1]), int(fields[2]), int(fields[3])
        # A dead thread group leader may leave living threads; alone, it is only waiting to be collected.
        ending = fields[0] in b"ZXx" or int(fields[6]) & PF_EXITING
        self.alive = not ending or int(fields[17]) > 1


def all_processes() -> Iterator[Process]:
    for entry in posix.listdir("/proc"):
        if entry.isdigit():
            try:
                fd = posix.open(f"/proc/{entry}/stat", posix.O_RDONLY | posix.O_CLOEXEC)
            except OSError:  # it has ended meanwhile
                continue
            try:
                stat = posix.read(fd, 4096)
            except OSError:
                continue
            finally:
                posix.close(fd)
            if stat:
                yield Process(stat)


class Tree:
    """The command and everything that descends from it."""

    def __init__(self, command: int, subreaper: bool, root: int) -> None:
        """``command`` is its pid, ``root`` the guardian's."""
        self.command = command
        self.subreaper = subreaper
        self.exit: int | None = None
        """The command's exit code or minus its signal; None while it runs."""
        self.exit_told = False
        self.empty = False
        self._root = root

    def reap(self) -> None:
        """Collect all that has ended: notes the command's end, and whether anything is left."""
        try:
            while True:
                pid, status = posix.waitpid(-1, posix.WNOHANG)
                if not pid:
                    return
                if pid == self.command:
                    self.exit = posix.waitstatus_to_exitcode(status)
        except ChildProcessError:
            if self.exit is None:  # collected by somebody else: cannot happen, and must not hang
                self.exit = -signal.SIGKILL
            # With a subreaper no child means no descendant.
            self.empty = self.subreaper or not self.scan()

    def scan(self) -> list[tuple[int, bytes]]:
        """What is alive, as (target for kill, ``name[pid]``): its process group negated, else the process."""
        try:
            processes = list(all_processes())
        except OSError:
            return self._scan_group()
        children: dict[int, list[Process]] = {}
        inside = []
        for process in processes:
            children.setdefault(process.parent, []).append(process)
            if process.session == self._root and process.pid != self._root:
                inside.append(process)
        inside += children.get(self._root, ())
        seen: dict[int, Process] = {}
        while inside:
            process = inside.pop()
            if process.pid not in seen:
                seen[process.pid] = process
                inside += children.get(process.pid, ())
        return [
            # A group below this session holds descendants only, and a signal to it cannot be outrun by a fork.
            (p.pid if p.group == self._root else -p.group, b"%s[%d]" % (p.name, p.pid))
            for p in sorted(seen.values(), key=lambda p: p.pid)
            if p.alive
        ]

    def _scan_group(self) -> list[tuple[int, bytes]]:
        """Without /proc: is there anybody in the command's process group?"""
        if not self.command:
            return []
        try:
            posix.killpg(self.command, 0)
        except ProcessLookupError:
            return []
        except PermissionError:
            pass
        return [(-self.command, b"process-group[%d]" % self.command)]

    def send(self, signum: int) -> bool:
        """Signal everything, and what appears meanwhile; False when all that is left may not be signalled."""
        sent: set[int] = set()
        refused = reached = False
        while True:
            fresh = {target for target, _ in self.scan()} - sent
            if not fresh:
                return reached or not refused
            for target in fresh:
                try:
                    posix.kill(target, signum)
                    if signum == signal.SIGTERM:
                        posix.kill(target, signal.SIGCONT)  # a stopped process would not see it
                    reached = True
                except ProcessLookupError:
                    pass
                except PermissionError:
                    refused = True
            sent |= fresh


def report(line: bytes) -> None:
    data = line + b"\n"
    try:
        while data:
            data = data[posix.write(STATUS, data) :]
    except OSError:  # ckdn is gone; the tree still has to be stopped
        pass


def report_exit(tree: Tree) -> None:
    """Once: how the command ended."""
    if tree.exit is not None and not tree.exit_told:
        tree.exit_told = True
        report(b"exit %d" % tree.exit)


def report_left(names: list[bytes]) -> None:
    report(b" ".join([b"left", *(name.hex().encode() for name in names)]))


def watch(tree: Tree, grace: float, wakeup: int) -> None:
    """Until the tree is empty: report the command's end and the survivors, stop what has to be stopped."""
    poller = select.poll()
    poller.register(wakeup, select.POLLIN)
    poller.register(CONTROL, select.POLLIN)
    phase = RUNNING
    deadline: float | None = None
    left_told = False
    while True:
        tree.reap()
        if phase == RUNNING and tree.exit is not None:
            phase, deadline = SETTLING, monotonic() + SETTLE_S
        if tree.empty:
            break
        if tree.exit is not None:
            report_exit(tree)
        wait = None if deadline is None else max(0.0, deadline - monotonic()) * 1000
        ready = [fd for fd, _ in poller.poll(wait)]
        expired = deadline is not None and monotonic() >= deadline
        order = heard(poller, wakeup, ready)
        if expired and phase == SETTLING:
            names = [name for _, name in tree.scan()]
            if names:
                report_left(names)
                left_told = True
            order = b"S"
        if b"K" in order or (expired and phase == TERMED):
            phase, deadline = KILLED, None
        elif order and phase < TERMED:
            phase, deadline = TERMED, monotonic() + grace
            tree.send(signal.SIGTERM)
        if phase == KILLED and (not tree.send(signal.SIGKILL) or not (tree.subreaper or tree.exit is None)):
            break  # what is left belongs to another user, or its end cannot be seen
    report_exit(tree)
    if not left_told:
        report_left([] if tree.empty else [name for _, name in tree.scan()])


def heard(poller: select.poll, wakeup: int, ready: list[int]) -> bytes:
    """What the guardian is told to do: ``S``, ``K``, both or nothing. The end of ckdn is an order to stop."""
    order = b""
    if wakeup in ready and set(posix.read(wakeup, 4096)) - {signal.SIGCHLD}:
        order = b"S"
    if CONTROL in ready:
        told = posix.read(CONTROL, 64)
        if not told:
            poller.unregister(CONTROL)
        order += told or b"S"
    return order


def spawn(argv: list[bytes], env: dict[bytes, bytes], cwd: bytes) -> int:
    """Start the command as leader of its own process group and return its pid.

    Reports why and ends this process when it cannot be started. The file is looked up as ``execvp`` does it, on the
    command's own PATH and from its own working directory.
    """
    try:
        posix.chdir(cwd)
    except OSError as error:
        report(b"failed %d cwd %s" % (error.errno or 0, cwd.hex().encode()))
        posix._exit(0)
    failure: int | None = errno.ENOENT
    place = b""
    for path in candidates(argv[0], env):
        try:
            return posix.posix_spawn(
                path,
                argv,
                env,
                setpgroup=0,
                setsigmask=(),
                setsigdef=(signal.SIGPIPE, signal.SIGXFSZ),  # Python ignores these two
            )
        except OSError as error:
            failure, place = error.errno, path
            if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.EACCES):
                break
    report(b"failed %d exec %s" % (failure or 0, place.hex().encode()))
    posix._exit(0)


def candidates(name: bytes, env: dict[bytes, bytes]) -> Iterator[bytes]:
    if b"/" in name:
        yield name
        return
    for folder in env.get(b"PATH", b"/bin:/usr/bin").split(b":"):
        path = folder + b"/" + name if folder else b"./" + name
        try:
            mode = posix.stat(path).st_mode
        except OSError:
            continue
        if mode & 0o170000 != 0o040000:  # a folder of that name is no program
            yield path


def read_request() -> tuple[bytes, float, list[bytes], dict[bytes, bytes]]:
    """cwd, grace in seconds, argv, env; ends this process when ckdn went away before it had said all."""
    fields = _read_exactly(int.from_bytes(_read_exactly(8), "big")).split(b"\0")
    count = int(fields[2])
    env = {}
    for field in fields[3 + count :]:
        key, _, value = field.partition(b"=")
        env[key] = value
    return fields[0], int(fields[1]) / 1000, fields[3 : 3 + count], env


def _read_exactly(size: int) -> bytes:
    parts = []
    while size:
        part = posix.read(CONTROL, size)
        if not part:
            posix._exit(0)
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def listen() -> int:
    """A descriptor that gives the number of each signal: SIGCHLD; and TERM, INT, HUP, which mean to stop the tree."""
    reading, writing = posix.pipe2(posix.O_CLOEXEC | posix.O_NONBLOCK) if hasattr(posix, "pipe2") else _pipe()
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    for signum in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        if signum == signal.SIGCHLD or signal.getsignal(signum) != signal.SIG_IGN:  # nohup holds for the command too
            signal.signal(signum, lambda *_: None)
    return reading


def _pipe() -> tuple[int, int]:
    pair = posix.pipe()
    for fd in pair:
        posix.set_inheritable(fd, False)
        posix.set_blocking(fd, False)
    return pair


def main() -> None:
    if posix.getsid(0) != posix.getpid():  # where ckdn could not start it as a session leader
        posix.setsid()
    for fd in (CONTROL, STATUS):
        posix.set_inheritable(fd, False)
    limit = posix.sysconf("SC_OPEN_MAX")
    posix.closerange(STATUS + 1, limit if 256 < limit < 1 << 20 else 1 << 20)
    cwd, grace, argv, env = read_request()
    wakeup = listen()
    subreaper = become_subreaper()
    command = spawn(argv, env, cwd)
    posix.dup2(0, 1)  # only the command holds the log open now
    posix.dup2(0, 2)
    posix.chdir("/")
    report(b"started %d" % command)
    watch(Tree(command, subreaper, posix.getpid()), grace, wakeup)
    posix._exit(0)  # nothing to flush, and the interpreter's own clean-up costs 2 ms
