"""The runner against real processes: how commands end, what they are given, and that nothing of them stays."""

from __future__ import annotations

import hashlib
import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import zipfile
from pathlib import Path

import pytest

from ckdn.errors import CkdnError
from ckdn.model import Ending
from ckdn.runner import Command, Interrupts, Outcome, child_environment, run, signal_name

ROOT = Path(__file__).parent.parent
PATIENCE_MS = 120_000
"""Only so that a broken runner fails instead of hanging; nothing depends on how long a thing takes."""

TREE = """
import os, signal, sys
fifo = os.open(sys.argv[1], os.O_WRONLY)
def stay():
    signal.signal(signal.SIGTERM, lambda *_: os.write(fifo, b"T"))
    os.write(fifo, b"+")
    while True:
        signal.pause()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:      # its parent is gone at once: an orphan in a session of its own
        os.setsid()
        stay()
    os._exit(0)
if os.fork() == 0:          # a plain child
    stay()
os.wait()
stay()
"""
"""Three processes that take no TERM: each writes ``+`` when it is there and ``T`` when it is told to stop."""

DRIVER = """
import json, os, sys
from ckdn.runner import Command, Interrupts, run
with Interrupts() as stop:
    told = json.loads(sys.argv[1])
    outcome = run(Command(tuple(told.pop("argv")), os.getcwd(), dict(os.environ), **told), stop)
    with open(told["log_dir"] + "/outcome", "w") as file:
        json.dump({"rc": outcome.ending.rc, "failure": outcome.ending.failure,
                   "interrupted": outcome.ending.interrupted, "survivors": outcome.survivors}, file)
"""


class Fifo:
    """A named pipe that processes hold open for as long as they live: its end of file is their death."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)
        os.mkfifo(path)
        self._fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        self._poll = select.poll()
        self._poll.register(self._fd, select.POLLIN)

    def expect(self, text: bytes) -> None:
        """Wait for the bytes, in any order."""
        got = b""
        while len(got) < len(text):
            part = self._next()
            assert part, f"all are gone after {got!r}"
            got += part
        assert sorted(got) == sorted(text)

    def expect_end(self) -> None:
        while self._next():
            pass

    def _next(self) -> bytes:
        assert self._poll.poll(PATIENCE_MS), "nothing happens"
        return os.read(self._fd, 1)

    def held(self) -> bool:
        """Does anybody still hold it open?"""
        return not any(event & select.POLLHUP for _, event in self._poll.poll(0))

    def close(self) -> None:
        os.close(self._fd)


@pytest.fixture
def fifo(tmp_path: Path):
    fifo = Fifo(tmp_path / "fifo")
    yield fifo
    fifo.close()


def go(log_dir: Path, *argv: str, stop: Interrupts | None = None, **more) -> Outcome:
    more.setdefault("cwd", str(log_dir))
    more.setdefault("env", dict(os.environ))
    return run(Command(argv=argv, log_dir=str(log_dir), **more), stop)


def python(code: str, *args: str) -> tuple[str, ...]:
    return (sys.executable, "-I", "-c", textwrap.dedent(code), *args)


def log(log_dir: Path, name: str = "full.log") -> bytes:
    return (log_dir / name).read_bytes()


def drive(log_dir: Path, *argv: str, code: str = DRIVER, path: Path = ROOT, **more) -> subprocess.Popen[bytes]:
    """ckdn's side in a process of its own."""
    popen = {key: more.pop(key) for key in ("preexec_fn",) if key in more}
    told = json.dumps({"argv": argv, "log_dir": str(log_dir), **more})
    env = {**os.environ, "PYTHONPATH": str(path)}
    return subprocess.Popen([sys.executable, "-c", code, told], cwd=log_dir, env=env, **popen)


def driven(log_dir: Path) -> dict:
    return json.loads((log_dir / "outcome").read_text())


# --- how commands end


@pytest.mark.parametrize("code", [0, 1, 2, 77, 255])
def test_exit_code_is_the_commands_own(tmp_path, code):
    outcome = go(tmp_path, "sh", "-c", f"exit {code}")
    assert outcome.ending == Ending(rc=code)
    assert (outcome.survivors, outcome.notes) == ((), ())
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", outcome.started_at)
    assert outcome.duration_s >= 0


@pytest.mark.parametrize("name", ["SEGV", "KILL", "ABRT", "PIPE", "XFSZ", "TERM", "INT"])
def test_death_by_signal_is_named(tmp_path, name):
    outcome = go(tmp_path, "sh", "-c", f"kill -{name} $$")
    assert outcome.ending == Ending(rc=-getattr(signal, f"SIG{name}"), failure=f"killed by SIG{name}")


def test_every_signal_has_its_usual_name():
    for known in signal.Signals:
        assert getattr(signal, signal_name(known)) == known
    assert signal_name(40) == "signal 40"


def make(path: Path, text: str, mode: int = 0o755) -> None:
    path.write_text(text)
    path.chmod(mode)


@pytest.mark.parametrize(
    ("argv", "rc", "why"),
    [
        (["no-such-tool"], 127, "no-such-tool not found (not on the command's PATH)"),
        (["./no-such-tool"], 127, "./no-such-tool not found (no such file)"),
        (["plain/tool"], 127, "plain/tool not found (no such file)"),
        (["./plain"], 126, "./plain is not executable (permission denied)"),
        (["plain"], 126, "plain is not executable (permission denied)"),
        (["folder"], 127, "folder not found (not on the command's PATH)"),
        (["./folder"], 126, "./folder is a folder"),
        (["./no-shebang"], 126, "./no-shebang is neither a program for this machine nor a script with a #! line"),
        (["./lost"], 126, "./lost: its interpreter /no/such/interpreter does not exist"),
        (["./dangling"], 126, "./dangling: a dangling link"),
        ([], 126, "the command is empty"),
        (["true", "a\0b"], 126, "an argument or a variable contains a NUL character"),
        (["true", "x" * 3_000_000], 126, "true: the arguments and the environment are too long for this system"),
    ],
)
def test_a_command_that_cannot_start_says_why(tmp_path, argv, rc, why):
    make(tmp_path / "plain", "", 0o644)
    make(tmp_path / "no-shebang", "echo hello\n")
    make(tmp_path / "lost", "#! /no/such/interpreter -x\n")
    (tmp_path / "folder").mkdir()
    (tmp_path / "dangling").symlink_to("nowhere")
    outcome = go(tmp_path, *argv, env={"PATH": f"{tmp_path}:/usr/bin:/bin"})
    assert outcome.ending == Ending(rc=rc, failure=f"cannot start: {why}")
    assert log(tmp_path) == b""


def test_a_missing_cwd_is_said(tmp_path):
    outcome = go(tmp_path, "true", cwd=f"{tmp_path}/gone")
    why = f"cannot start: the working directory {tmp_path}/gone: No such file or directory"
    assert outcome.ending == Ending(rc=126, failure=why)


@pytest.mark.parametrize("key", ["", "A=B"])
def test_an_impossible_variable_is_said(tmp_path, key):
    outcome = go(tmp_path, "true", env={key: "x"})
    assert outcome.ending.rc == 126
    assert "is no name for an environment variable" in outcome.ending.failure


def test_timeout_stops_a_command_that_takes_no_term(tmp_path, fifo):
    script = f"trap '' TERM; exec 9>{fifo.path}; echo before; while :; do sleep 0.1; done"
    outcome = go(tmp_path, "sh", "-c", script, timeout=0.7, grace=0.1)
    assert outcome.ending == Ending(rc=124, failure="timed out after 0.7 s", timed_out=True)
    assert log(tmp_path) == b"before\n"
    fifo.expect_end()


def test_timeout_stops_a_command_that_never_stops_talking(tmp_path):
    outcome = go(tmp_path, "sh", "-c", "while :; do echo again; done", timeout=0.3)
    assert outcome.ending.timed_out
    assert outcome.log_bytes == len(log(tmp_path)) > 0


def test_term_comes_first_and_what_the_tool_says_then_is_kept(tmp_path, fifo):
    code = f"""
    import os, signal, sys
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("last words"))
    os.write(os.open({fifo.path!r}, os.O_WRONLY), b"+")
    while True: signal.pause()
    """
    with Interrupts(install=False) as stop:
        asked = threading.Thread(target=lambda: (fifo.expect(b"+"), stop.request(signal.SIGTERM)))
        asked.start()
        outcome = go(tmp_path, *python(code), stop=stop, grace=3600)
        asked.join()
    assert outcome.ending == Ending(rc=143, failure="interrupted by SIGTERM", interrupted=True)
    assert log(tmp_path) == b"last words\n"


def test_a_stopped_process_is_woken_to_see_term(tmp_path):
    outcome = go(tmp_path, "sh", "-c", "kill -STOP $$", timeout=0.2, grace=3600)
    assert outcome.ending.timed_out


def test_an_interrupt_from_before_starts_nothing(tmp_path):
    with Interrupts(install=False) as stop:
        stop.request(signal.SIGHUP)
        outcome = go(tmp_path, "sh", "-c", "echo ran", stop=stop)
    assert outcome.ending == Ending(rc=129, failure="interrupted by SIGHUP", interrupted=True)
    assert log(tmp_path) == b""


# --- the whole tree


def test_children_with_sessions_of_their_own_are_stopped_too(tmp_path, fifo):
    with Interrupts(install=False) as stop:
        asked = threading.Thread(target=lambda: (fifo.expect(b"+++"), stop.request(signal.SIGINT)))
        asked.start()
        outcome = go(tmp_path, *python(TREE, fifo.path), stop=stop, grace=0.05)
        asked.join()
    assert outcome.ending == Ending(rc=130, failure="interrupted by SIGINT", interrupted=True)
    assert outcome.notes == ()
    assert not fifo.held()


def test_kill_9_of_ckdn_stops_the_whole_tree(tmp_path, fifo):
    ckdn = drive(tmp_path, *python(TREE, fifo.path), grace=0.05)
    fifo.expect(b"+++")
    ckdn.kill()
    ckdn.wait()
    fifo.expect_end()
    assert not (tmp_path / "outcome").exists()


def test_kill_9_of_ckdn_while_it_stops_the_tree(tmp_path, fifo):
    ckdn = drive(tmp_path, *python(TREE, fifo.path), grace=0.3)
    fifo.expect(b"+++")
    ckdn.terminate()
    fifo.expect(b"TTT")
    ckdn.kill()
    ckdn.wait()
    fifo.expect_end()


def test_the_guardians_own_death_takes_the_command_along(tmp_path, fifo):
    outcome = go(tmp_path, "sh", "-c", f"exec 9>{fifo.path}; kill -9 $PPID; exec sleep 1000")
    assert outcome.ending == Ending(rc=-9, failure="the guardian process was killed, and the command with it")
    fifo.expect_end()


@pytest.mark.skipif(sys.platform != "linux", reason="orphans are found in /proc")
def test_the_guardians_own_death_takes_orphans_along(tmp_path, fifo):
    code = f"""
import os, signal, sys, time
guardian = os.getppid()
fifo = os.open({fifo.path!r}, os.O_WRONLY)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.setsid()
        while os.getppid() != guardian:
            time.sleep(0.01)
        os.kill(guardian, signal.SIGKILL)
        time.sleep(1000)
    os._exit(0)
time.sleep(1000)
"""
    outcome = go(tmp_path, *python(code), env={**os.environ, "CKDN_RUN_DIR": str(tmp_path)})
    assert outcome.ending.rc == -9
    fifo.expect_end()


def test_a_stopped_guardian_does_not_keep_the_tree_alive(tmp_path, fifo):
    code = f"""
import os, signal, time
guardian = os.getppid()
fifo = os.open({fifo.path!r}, os.O_WRONLY)
if os.fork() == 0:
    os.setsid()
    time.sleep(1000)
os.kill(guardian, signal.SIGSTOP)
time.sleep(1000)
"""
    env = {**os.environ, "CKDN_RUN_DIR": str(tmp_path)}
    outcome = go(tmp_path, *python(code), env=env, timeout=0.5, grace=0.1)
    assert (outcome.ending.rc, outcome.ending.timed_out) == (124, True)
    assert [note for note in outcome.notes if "not gone" in note]
    fifo.expect_end()


def test_a_term_to_the_guardian_stops_the_tree(tmp_path, fifo):
    outcome = go(tmp_path, "sh", "-c", f"exec 9>{fifo.path}; kill -TERM $PPID; exec sleep 1000")
    assert outcome.ending == Ending(rc=-15, failure="killed by SIGTERM")
    fifo.expect_end()


SURVIVOR = """
import os, signal, sys
ready, told = os.pipe()
if os.fork() == 0:
    os.close(ready)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    fifo = os.open(sys.argv[1], os.O_WRONLY)
    os.close(told)
    while True: signal.pause()
os.close(told)
os.read(ready, 1)
print("green")
"""
"""Leaves a process that takes no TERM and holds the log pipe, and ends well."""


def test_a_survivor_is_named_and_the_result_does_not_wait_for_its_end(tmp_path, fifo):
    outcome = go(tmp_path, *python(SURVIVOR, fifo.path), grace=3600)
    assert fifo.held(), "the result came while the survivor lived"
    assert outcome.ending == Ending(rc=0)
    assert log(tmp_path) == b"green\n"
    (name,) = outcome.survivors
    found = re.fullmatch(r"python[\d.]*\[(\d+)\]", name)
    assert found
    os.kill(int(found[1]), signal.SIGKILL)
    fifo.expect_end()


def test_survivors_are_stopped_even_when_ckdn_has_ended(tmp_path, fifo):
    assert drive(tmp_path, *python(SURVIVOR, fifo.path), grace=0.3).wait() == 0
    assert driven(tmp_path)["rc"] == 0
    assert len(driven(tmp_path)["survivors"]) == 1
    fifo.expect_end()


def test_a_survivor_that_never_stops_writing_does_not_hold_the_result(tmp_path, fifo):
    script = f"trap '' TERM; exec 9>{fifo.path}; yes & exit 3"
    outcome = go(tmp_path, "sh", "-c", script, grace=3600)
    assert outcome.ending == Ending(rc=3)
    assert len(outcome.survivors) == 1
    fifo.expect_end()  # takes no TERM, but the end of the log is its end


@pytest.mark.skipif(not shutil.which("bash"), reason="process substitution is bash's")
def test_the_remains_of_a_pipeline_are_in_the_log_or_named(tmp_path):
    outcome = go(tmp_path, "bash", "-c", "echo whole > >(cat)")
    assert outcome.ending == Ending(rc=0)
    assert log(tmp_path) == b"whole\n" or outcome.survivors


def test_nothing_of_a_run_stays_in_this_process(tmp_path):
    def held():
        children = Path(f"/proc/self/task/{threading.get_native_id()}/children").read_text()
        return sorted(fd.name for fd in Path("/proc/self/fd").iterdir()), children

    go(tmp_path, "true")
    before = held()
    go(tmp_path, "true")
    go(tmp_path, "no-such-tool")
    go(tmp_path, "sleep", "1000", timeout=0.05)
    assert held() == before


# --- what a command is given


def test_stdin_is_dev_null(tmp_path):
    go(tmp_path, *python("import os; print(os.path.samestat(os.fstat(0), os.stat('/dev/null')))"))
    assert log(tmp_path) == b"True\n"


def test_a_command_gets_no_descriptor_but_the_three(tmp_path):
    leaked, writing = os.pipe()
    try:
        high = os.dup2(leaked, 200)
        go(tmp_path, *python("import os; print(*sorted(map(int, os.listdir('/proc/self/fd'))))"))
    finally:
        for fd in (leaked, writing, high):
            os.close(fd)
    assert log(tmp_path) == b"0 1 2 3\n"  # 3 reads the folder


def test_the_guardian_lets_go_of_the_log_once_the_command_runs(tmp_path):
    script = "for fd in 1 2; do until [ $(readlink /proc/$PPID/fd/$fd) = /dev/null ]; do :; done; done"
    assert go(tmp_path, "sh", "-c", script, timeout=60).ending == Ending(rc=0)


def test_a_command_leads_its_own_group_in_another_session(tmp_path):
    go(tmp_path, *python("import os; print(os.getpgid(0) == os.getpid(), os.getsid(0))"))
    leader, session = log(tmp_path).split()
    assert leader == b"True"
    assert int(session) != os.getsid(0)


def test_the_environment_is_exactly_the_given_one(tmp_path):
    env = {"PATH": "/usr/bin:/bin", "EMPTY": "", "EQUALS": "a=b=c", "LINES": "a\nb", "BYTES": os.fsdecode(b"\xff\xfe")}
    go(tmp_path, "env", "-0", env=env)
    assert sorted(log(tmp_path).rstrip(b"\0").split(b"\0")) == sorted(
        os.fsencode(f"{key}={value}") for key, value in env.items()
    )


def test_arguments_reach_the_command_unchanged(tmp_path):
    args = ["", " ", "a b", "*", "$HOME", "`x`", "'", '"', "\\", "new\nline", "ü", os.fsdecode(b"\xff\x80")]
    go(tmp_path, "printf", "%s|", *args)
    assert log(tmp_path) == b"".join(os.fsencode(arg) + b"|" for arg in args)


def test_huge_arguments_and_environment(tmp_path):
    args = [letter * 100_000 for letter in "abcdefgh"]
    env = {**os.environ, **{f"BIG{n}": "y" * 100_000 for n in range(5)}}
    code = "import os, sys; print([len(a) for a in sys.argv[1:]], sum(len(os.environ[f'BIG{n}']) for n in range(5)))"
    outcome = go(tmp_path, *python(code), *args, env=env)
    assert outcome.ending == Ending(rc=0)
    assert log(tmp_path).decode() == f"{[100_000] * 8} 500000\n"


def test_programs_are_looked_up_from_the_commands_cwd_and_path(tmp_path):
    for folder in ("first", "second", "work/bin", "work/.venv/bin"):
        (tmp_path / folder).mkdir(parents=True)
    make(tmp_path / "first/tool", "", 0o644)
    make(tmp_path / "second/tool", "#!/bin/sh\necho second\n")
    make(tmp_path / "work/bin/local", "#!/bin/sh\necho local\n")
    make(tmp_path / "work/.venv/bin/x", "#!/bin/sh\necho venv\n")
    make(tmp_path / "work/here", "#!/bin/sh\necho here\n")
    env = {"PATH": f"{tmp_path}/first:{tmp_path}/second:bin:/usr/bin:/bin"}
    for argv, said in (
        ("tool", b"second\n"),  # the first one cannot be executed
        ("local", b"local\n"),  # PATH holds a relative folder
        (".venv/bin/x", b"venv\n"),
        ("./here", b"here\n"),
    ):
        outcome = go(tmp_path, argv, cwd=f"{tmp_path}/work", env=env)
        assert (outcome.ending, log(tmp_path)) == (Ending(rc=0), said)
    assert go(tmp_path, "here", cwd=f"{tmp_path}/work", env={"PATH": ":/bin"}).ending == Ending(rc=0)
    assert go(tmp_path, "here", cwd=f"{tmp_path}/work", env={"PATH": "/bin"}).ending.rc == 127
    assert go(tmp_path, "true", env={}).ending == Ending(rc=0), "without a PATH there is the system's"


def test_child_environment():
    base = {"HOME": "/h", "A": "base"}
    assert child_environment(base, {"A": "check"}, "/runs/x") == {
        "HOME": "/h",
        "A": "check",
        "PYTHONUNBUFFERED": "1",
        "NO_COLOR": "1",
        "CKDN_RUN_DIR": "/runs/x",
    }
    chosen = child_environment({"NO_COLOR": ""}, {"PYTHONUNBUFFERED": "0", "CKDN_RUN_DIR": "other"}, "/runs/x")
    assert chosen == {"NO_COLOR": "", "PYTHONUNBUFFERED": "0", "CKDN_RUN_DIR": "/runs/x"}
    assert base == {"HOME": "/h", "A": "base"}


# --- the log


@pytest.mark.parametrize("size", [0, 1, 65536, 1 << 18, (1 << 18) + 1, 3_000_000])
def test_the_log_has_every_byte(tmp_path, size):
    data = (bytes(range(256)) * (size // 256 + 1))[:size]
    code = f"import os, sys; sys.stdout.buffer.write((bytes(range(256)) * ({size} // 256 + 1))[:{size}])"
    outcome = go(tmp_path, *python(code))
    assert log(tmp_path) == data
    assert outcome.log_bytes == size
    assert outcome.log_sha256 == hashlib.sha256(data).hexdigest()


def test_both_streams_go_to_one_log_in_their_order(tmp_path):
    go(tmp_path, "sh", "-c", "for i in 1 2 3; do echo out $i; echo err $i >&2; done")
    assert log(tmp_path) == b"out 1\nerr 1\nout 2\nerr 2\nout 3\nerr 3\n"
    assert [file.name for file in tmp_path.iterdir()] == ["full.log"]


def test_split_streams_are_kept_apart_and_together(tmp_path):
    code = "import os\nfor _ in range(500): os.write(1, b'o' * 1000); os.write(2, b'e' * 999)"
    outcome = go(tmp_path, *python(code), split_streams=True)
    assert log(tmp_path, "stdout.log") == b"o" * 500_000
    assert log(tmp_path, "stderr.log") == b"e" * 499_500
    whole = log(tmp_path)
    assert (whole.count(b"o"), whole.count(b"e"), len(whole)) == (500_000, 499_500, outcome.log_bytes)
    assert outcome.log_sha256 == hashlib.sha256(whole).hexdigest()


@pytest.mark.parametrize("split", [False, True])
def test_a_log_past_its_bound_stops_the_tree(tmp_path, fifo, split):
    script = f"exec 9>{fifo.path}; yes"
    outcome = go(tmp_path, "sh", "-c", script, max_log_bytes=100_001, split_streams=split)
    assert outcome.ending.failure == "log passed the bound of 100001 bytes"
    assert not outcome.ending.timed_out
    assert not outcome.ending.interrupted
    assert outcome.log_bytes == len(log(tmp_path)) == 100_001
    fifo.expect_end()


def test_a_log_of_exactly_the_bound_is_fine(tmp_path):
    assert go(tmp_path, "printf", "12345", max_log_bytes=5).ending == Ending(rc=0)
    ended = go(tmp_path, "printf", "123456", max_log_bytes=5).ending
    assert ended.failure == "log passed the bound of 5 bytes"
    assert log(tmp_path) == b"12345"


def test_a_full_disk_stops_the_tree_and_is_said(tmp_path, fifo):
    (tmp_path / "full.log").symlink_to("/dev/full")
    outcome = go(tmp_path, "sh", "-c", f"exec 9>{fifo.path}; echo x; exec sleep 1000")
    assert outcome.ending.failure == "the log could not be written: No space left on device"
    assert outcome.log_bytes == 0
    fifo.expect_end()


@pytest.mark.parametrize(
    "change",
    [
        ": > full.log",
        "rm full.log",
        "rm full.log; echo all fine > full.log",
        "mv full.log old.log; ln -s old.log full.log",
        "echo more >> full.log",
        "rm full.log; mkfifo full.log",
    ],
)
def test_a_log_that_the_command_changed_is_said(tmp_path, change):
    # Only what is in the log already can be taken from it.
    script = f"echo first; while [ ! -s full.log ]; do :; done; {change}"
    outcome = go(tmp_path, "sh", "-c", script)
    assert outcome.ending == Ending(rc=0, failure="the log was changed while the command ran")


def test_a_log_that_was_only_read_is_fine(tmp_path):
    assert go(tmp_path, "sh", "-c", "echo first; cat < full.log > copy").ending == Ending(rc=0)


def test_a_log_that_cannot_be_made_is_a_refusal(tmp_path):
    with pytest.raises(CkdnError, match=r"cannot write .*/gone/full\.log: No such file or directory"):
        run(Command(("true",), str(tmp_path), {}, f"{tmp_path}/gone"))


# --- signals to ckdn


@pytest.mark.parametrize(("name", "rc"), [("SIGINT", 130), ("SIGTERM", 143), ("SIGHUP", 129)])
def test_a_signal_to_ckdn_is_a_result(tmp_path, fifo, name, rc):
    ckdn = drive(tmp_path, *python(TREE, fifo.path), grace=0.05)
    fifo.expect(b"+++")
    ckdn.send_signal(getattr(signal, name))
    assert ckdn.wait() == 0
    assert driven(tmp_path) == {"rc": rc, "failure": f"interrupted by {name}", "interrupted": True, "survivors": []}
    assert not fifo.held()


def test_a_second_signal_kills_at_once(tmp_path, fifo):
    ckdn = drive(tmp_path, *python(TREE, fifo.path), grace=3600)
    fifo.expect(b"+++")
    ckdn.send_signal(signal.SIGINT)
    fifo.expect(b"TTT")
    ckdn.send_signal(signal.SIGINT)
    assert ckdn.wait() == 0
    assert driven(tmp_path)["failure"] == "interrupted by SIGINT"
    assert not fifo.held()


def test_an_ignored_signal_stays_ignored_for_ckdn_and_command(tmp_path, fifo):
    script = f"exec 9>{fifo.path}; kill -HUP $$; echo alive; printf + >&9; exec sleep 1000"
    ckdn = drive(tmp_path, "sh", "-c", script, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    fifo.expect(b"+")
    ckdn.send_signal(signal.SIGHUP)
    ckdn.send_signal(signal.SIGTERM)
    assert ckdn.wait() == 0
    assert driven(tmp_path)["failure"] == "interrupted by SIGTERM"
    assert log(tmp_path) == b"alive\n"


def test_old_handlers_come_back():
    watched = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.getsignal(signum) for signum in watched]
    with Interrupts() as stop:
        os.kill(os.getpid(), signal.SIGTERM)
        assert select.select([stop.stop_fd], [], [], PATIENCE_MS / 1000)[0]
        assert stop.signum == signal.SIGTERM
        assert not select.select([stop.kill_fd], [], [], 0)[0]
        os.kill(os.getpid(), signal.SIGINT)
        assert select.select([stop.kill_fd], [], [], PATIENCE_MS / 1000)[0]
        assert stop.signum == signal.SIGTERM
    assert [signal.getsignal(signum) for signum in watched] == before


# --- many at once, and odd places


def test_many_runs_at_once(tmp_path):
    outcomes: dict[int, Outcome] = {}

    def one(number: int) -> None:
        folder = tmp_path / str(number)
        folder.mkdir()
        code = f"import sys; sys.stdout.write('{number} ' * 100_000); sys.exit({number})"
        outcomes[number] = go(folder, *python(code))

    threads = [threading.Thread(target=one, args=(number,)) for number in range(24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number in range(24):
        assert outcomes[number].ending == Ending(rc=number)
        assert log(tmp_path / str(number)) == f"{number} ".encode() * 100_000


def test_one_interrupt_reaches_every_run(tmp_path, fifo):
    outcomes = []
    with Interrupts(install=False) as stop:

        def one(number: int) -> None:
            (tmp_path / str(number)).mkdir()
            script = f"exec 9>{fifo.path}; printf + >&9; exec sleep 1000"
            outcomes.append(go(tmp_path / str(number), "sh", "-c", script, stop=stop))

        threads = [threading.Thread(target=one, args=(number,)) for number in range(5)]
        for thread in threads:
            thread.start()
        fifo.expect(b"+++++")
        stop.request(signal.SIGTERM)
        for thread in threads:
            thread.join()
    assert [outcome.ending.rc for outcome in outcomes] == [143] * 5
    assert not fifo.held()


def test_ckdn_may_run_with_its_own_streams_closed(tmp_path):
    def close() -> None:
        for fd in (0, 1, 2):
            os.close(fd)

    code = DRIVER.replace("with Interrupts() as stop:", "for stop in [None]:")  # its pipes would fill the gap
    ckdn = drive(tmp_path, "sh", "-c", "echo out; echo err >&2; exit 4", code=code, preexec_fn=close)
    assert ckdn.wait() == 0
    assert driven(tmp_path)["rc"] == 4
    assert log(tmp_path) == b"out\nerr\n"


def test_ckdn_may_run_with_sigchld_ignored(tmp_path):
    ignore = DRIVER.replace(
        "import json", "import signal; signal.signal(signal.SIGCHLD, signal.SIG_IGN)\nimport json", 1
    )
    assert drive(tmp_path, "sh", "-c", "exit 5", code=ignore).wait() == 0
    assert driven(tmp_path)["rc"] == 5


def test_ckdn_may_be_imported_from_a_zip(tmp_path):
    archive = tmp_path / "ckdn.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        for name in ("__init__", "errors", "model", "runner", "guardian"):
            packed.write(ROOT / f"ckdn/{name}.py", f"ckdn/{name}.py")
    assert drive(tmp_path, "sh", "-c", "exit 6", path=archive).wait() == 0
    assert driven(tmp_path)["rc"] == 6


def test_importing_the_runner_stays_cheap():
    listed = "import sys; before = set(sys.modules); import ckdn.runner, ckdn.rundir; print(*set(sys.modules) - before)"
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    found = subprocess.run([sys.executable, "-S", "-c", listed], env=env, capture_output=True, text=True, check=True)
    dear = {
        "enum",
        "re",
        "typing",
        "subprocess",
        "threading",
        "pathlib",
        "contextlib",
        "json",
        "signal",
        "hashlib",
        "shutil",
    }
    assert set(found.stdout.split()) & dear == set()
