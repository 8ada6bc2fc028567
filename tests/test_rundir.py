"""Run directories on a real file system: uniqueness, locks, atomic writes under kill -9, pruning."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ckdn import rundir
from ckdn.errors import CkdnError
from ckdn.rundir import create, is_fresh, latest, list_runs, lock, probe, prune, set_latest, write_atomic

ROOT = Path(__file__).parent.parent
SECOND = 1_000_000_000
NOON = 1_796_090_510 * SECOND  # 2026-12-01T02:01:50Z
OLD_S = NOON // SECOND - 10 * 86_400


def finished(runs_dir: Path, check: str, at_ns: int, content: str = "{}", file: str = "digest.json") -> str:
    with create(str(runs_dir), check, at_ns) as run:
        write_atomic(f"{run.path}/{file}", content.encode())
        return run.name


def dead(runs_dir: Path, check: str, at_ns: int) -> str:
    with create(str(runs_dir), check, at_ns) as run:
        return run.name


def aggregate(runs_dir: Path, alias: str, at_ns: int, members: list[str]) -> str:
    listed = [{"check": "x", "status": "pass", "run_dir": f".agent-runs/{name}"} for name in members]
    return finished(runs_dir, alias, at_ns, json.dumps({"members": listed}), "aggregate.json")


def names(runs_dir: Path) -> list[str]:
    return sorted(entry.name for entry in runs_dir.iterdir() if not entry.name.startswith("."))


# --- create


def test_a_run_directory_is_named_after_its_start_and_check(tmp_path):
    with create(str(tmp_path / "a/b"), "lint", NOON) as run:
        assert run.name == "20261201T020150Z-lint"
        assert (tmp_path / "a/b" / run.name).is_dir()
        assert (run.check, run.started_ns) == ("lint", NOON)
    with create(str(tmp_path / "a/b"), "lint", NOON) as run:
        assert run.name == "20261201T020150Z-lint-2"


def test_directories_made_at_once_are_all_different(tmp_path):
    code = """if 1:
        import sys
        from ckdn.rundir import create
        for _ in range(50): print(create(sys.argv[1], "x", int(sys.argv[2])).name)
    """
    started = [
        subprocess.Popen([sys.executable, "-c", code, str(tmp_path), str(NOON)], cwd=ROOT, stdout=subprocess.PIPE)
        for _ in range(4)
    ]
    made = b"".join(process.communicate()[0] for process in started).split()
    assert len(made) == len(set(made)) == 200
    assert names(tmp_path) == sorted(name.decode() for name in made)


@pytest.mark.parametrize("check", ["", ".", "..", "../x", "a/b", ".hidden", "a\0b", "a\nb"])
def test_a_name_that_would_leave_the_folder_is_refused(tmp_path, check):
    with pytest.raises(CkdnError, match="cannot be part of a file name"):
        create(str(tmp_path), check)
    with pytest.raises(CkdnError, match="cannot be part of a file name"):
        lock(str(tmp_path), check)
    assert names(tmp_path) == []


def test_a_runs_dir_that_cannot_be_written_is_a_refusal(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    for attempt in (lambda: create(str(blocked), "x"), lambda: lock(str(blocked), "x")):
        with pytest.raises(CkdnError) as caught:
            attempt()
        (line,) = caught.value.lines()
        assert line.startswith(f"ckdn: cannot write runs_dir {blocked}: ")


@pytest.mark.skipif(os.geteuid() == 0 and not shutil.which("setpriv"), reason="root may write everywhere")
def test_a_read_only_runs_dir_is_a_refusal(tmp_path):
    tmp_path.chmod(0o555)
    code = "import sys; from ckdn.rundir import create; create(sys.argv[1], 'x')"
    drop = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] if os.geteuid() == 0 else []
    run = subprocess.run([*drop, sys.executable, "-c", code, str(tmp_path)], cwd=ROOT, capture_output=True, text=True)
    assert f"CkdnError: cannot write runs_dir {tmp_path}: Permission denied" in run.stderr


def test_runs_dir_may_be_a_symlink(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    for number in range(3):
        finished(tmp_path / "link", "x", NOON + number)
    prune(str(tmp_path / "link"), 1)
    assert names(tmp_path / "real") == ["20261201T020150Z-x-3"]


# --- list


def test_runs_of_one_second_are_listed_by_start_not_by_name(tmp_path):
    made = [finished(tmp_path, check, NOON + n) for n, check in enumerate(["zz", "mm", "aa", "zz", "zz"])]
    assert [run.name for run in list_runs(str(tmp_path))] == made
    assert [run.check for run in list_runs(str(tmp_path))] == ["zz", "mm", "aa", "zz", "zz"]


def test_a_listed_run_says_whose_it_is_and_whether_it_is_finished(tmp_path):
    # `a-2` is a check of its own here, and the second run of `a` has the same form
    first = finished(tmp_path, "a", NOON)
    own = finished(tmp_path, "a-2", NOON + SECOND)
    second = dead(tmp_path, "a", NOON)
    alias = aggregate(tmp_path, "all", NOON + 2 * SECOND, [])
    runs = {run.name: (run.check, run.finished) for run in list_runs(str(tmp_path))}
    assert runs == {first: ("a", True), own: ("a-2", True), second: ("a", False), alias: ("all", True)}
    assert [run.name for run in list_runs(str(tmp_path), "a")] == [first, second]


def test_listing_takes_only_run_directories(tmp_path):
    own = finished(tmp_path, "x", NOON)
    (tmp_path / "20261201T020150Z-file").write_text("")
    (tmp_path / "20261201T020150Z-link").symlink_to(own)
    for name in ("notes", "20261201-x", "20261201T020150Z-", "2026120xT020150Z-x", ".locks"):
        (tmp_path / name).mkdir()
    assert [run.name for run in list_runs(str(tmp_path))] == [own]
    assert list_runs(str(tmp_path / "nowhere")) == []


def test_a_run_whose_start_file_is_lost_is_placed_by_its_name(tmp_path):
    later = finished(tmp_path, "x", NOON + SECOND)
    lost = finished(tmp_path, "x", NOON)
    (tmp_path / lost / ".start").unlink()
    odd = tmp_path / "99999999T999999Z-x"
    odd.mkdir()
    assert [(run.name, run.check) for run in list_runs(str(tmp_path))] == [(odd.name, "x"), (lost, "x"), (later, "x")]


# --- latest


def test_latest_follows_the_last_call(tmp_path):
    assert latest(str(tmp_path)) == ""
    for number in range(3):
        name = finished(tmp_path, "x", NOON + number)
        set_latest(str(tmp_path), name)
        assert latest(str(tmp_path)) == name
        assert (tmp_path / "latest").resolve() == tmp_path / name
    assert not any(entry.name.startswith(rundir.TEMP) for entry in tmp_path.iterdir())
    shutil.rmtree(tmp_path / name)
    assert latest(str(tmp_path)) == ""


def test_latest_is_a_file_where_there_can_be_no_link(tmp_path):
    (tmp_path / "latest").mkdir()
    name = finished(tmp_path, "x", NOON)
    set_latest(str(tmp_path), name)
    assert (tmp_path / "LATEST").read_text() == name + "\n"
    assert latest(str(tmp_path)) == name


def test_latest_never_leads_elsewhere(tmp_path):
    (tmp_path / "latest").symlink_to("../..")
    assert latest(str(tmp_path)) == ""


# --- lock


def test_a_second_holder_is_refused_with_the_pid_of_the_first(tmp_path):
    with lock(str(tmp_path), "x"), lock(str(tmp_path), "y"), pytest.raises(CkdnError) as caught:
        lock(str(tmp_path), "x")
    assert caught.value.lines() == [f"ckdn: check `x` is already running (pid {os.getpid()})"]
    lock(str(tmp_path), "x").close()


def test_a_lock_ends_with_its_process(tmp_path):
    code = (
        "import sys; from ckdn.rundir import lock; held = lock(sys.argv[1], 'x'); print(flush=True); sys.stdin.read()"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with holder:
        holder.stdout.readline()
        with pytest.raises(CkdnError, match=rf"already running \(pid {holder.pid}\)"):
            lock(str(tmp_path), "x")
        holder.kill()
    (tmp_path / ".locks/x.lock").write_text("a longer line than any pid\n")
    with lock(str(tmp_path), "x"):
        assert (tmp_path / ".locks/x.lock").read_text() == f"{os.getpid()}\n"


def test_one_of_many_gets_the_lock(tmp_path):
    held, refused = [], []
    start = threading.Barrier(8)

    def attempt() -> None:
        start.wait()
        try:
            held.append(lock(str(tmp_path), "x"))
        except CkdnError as error:
            refused.append(error)

    threads = [threading.Thread(target=attempt) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(held), len(refused)) == (1, 7)
    held[0].close()


@pytest.mark.parametrize("make", [os.symlink, os.link])
def test_a_lock_writes_into_no_other_file(tmp_path, make):
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / ".locks").mkdir()
    make(victim, tmp_path / ".locks/a.lock")
    with pytest.raises(CkdnError, match=r"a\.lock: is no plain file"):
        lock(str(tmp_path), "a")
    assert victim.read_text() == "precious"


def test_a_lock_that_is_a_fifo_or_stands_in_a_linked_folder_is_refused(tmp_path):
    (tmp_path / ".locks").mkdir()
    os.mkfifo(tmp_path / ".locks/a.lock")
    with pytest.raises(CkdnError, match=r"a\.lock: is no plain file"):
        lock(str(tmp_path), "a")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    runs = tmp_path / "runs"
    runs.mkdir()
    (runs / ".locks").symlink_to(elsewhere)
    with pytest.raises(CkdnError, match=r"\.locks: is a link"):
        lock(str(runs), "a")
    assert list(elsewhere.iterdir()) == []


def test_links_among_the_files_of_a_run_are_not_followed(tmp_path):
    victim = tmp_path / "victim"
    victim.write_text(f"{NOON} stolen\n")
    name = finished(tmp_path, "x", NOON)
    (tmp_path / name / ".start").unlink()
    (tmp_path / name / ".start").symlink_to(victim)
    assert [run.check for run in list_runs(str(tmp_path))] == ["x"]
    os.mkfifo(tmp_path / name / "aggregate.json")
    assert prune(str(tmp_path), 1) == []
    assert victim.read_text() == f"{NOON} stolen\n"


def test_a_command_does_not_inherit_a_lock(tmp_path):
    from ckdn.runner import Command, run

    with lock(str(tmp_path), "x"), create(str(tmp_path), "x") as made:
        told = run(Command(("sh", "-c", "echo /proc/self/fd/*"), "/", dict(os.environ), made.path))
    assert told.ending.rc == 0
    lock(str(tmp_path), "x").close()


# --- atomic writes


def test_write_atomic_replaces_the_whole_file(tmp_path):
    target = tmp_path / "digest.json"
    for data in (b"first", b"", bytes(range(256)) * 10_000, b"last"):
        write_atomic(str(target), data)
        assert target.read_bytes() == data
    assert names(tmp_path) == ["digest.json"]


def test_write_atomic_works_in_the_current_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_atomic("here", b"x")
    assert (tmp_path / "here").read_bytes() == b"x"


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path):
    (tmp_path / "target").mkdir()
    (tmp_path / "target/inside").write_text("kept")
    with pytest.raises(CkdnError, match=r"cannot write .*target: "):
        write_atomic(str(tmp_path / "target"), b"x")
    with pytest.raises(CkdnError, match=r"cannot write .*: No such file or directory"):
        write_atomic(str(tmp_path / "gone/file"), b"x")
    assert list(tmp_path.rglob("*")) == [tmp_path / "target", tmp_path / "target/inside"]


def test_many_threads_may_write_one_file(tmp_path):
    target = str(tmp_path / "file")
    contents = [bytes([65 + n]) * 50_000 for n in range(8)]
    threads = [
        threading.Thread(target=lambda data=data: [write_atomic(target, data) for _ in range(5)]) for data in contents
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert Path(target).read_bytes() in contents
    assert names(tmp_path) == ["file"]


def test_kill_9_at_any_instant_leaves_a_whole_file(tmp_path):
    code = """if 1:
        import sys
        from ckdn.rundir import write_atomic
        number = int(sys.argv[2])
        while True:
            number += 1
            write_atomic(sys.argv[1], b"%08d\\n" % number * 20_000)
            print(number, flush=True)
    """
    target = tmp_path / "file"
    write_atomic(str(target), b"00000000\n" * 20_000)
    number = 0
    for instant in range(50):
        writer = subprocess.Popen(
            [sys.executable, "-c", code, str(target), str(number)], cwd=ROOT, stdout=subprocess.PIPE, text=True
        )
        with writer:
            said = int(writer.stdout.readline())
            # the kill lands at a different point of the next write each time
            spent = time.perf_counter_ns() + instant * 40_000
            while time.perf_counter_ns() < spent:
                pass
            writer.send_signal(signal.SIGKILL)
            for line in writer.stdout:
                said = int(line)
        data = target.read_bytes()
        number = int(data[:8])
        assert data == b"%08d\n" % number * 20_000, "torn"
        assert number in (said, said + 1), "a write that was reported is there, and at most the next one"
    left = [entry for entry in tmp_path.iterdir() if entry != target]
    assert all(entry.name.startswith(rundir.TEMP) for entry in left)
    for entry in left:
        os.utime(entry, (OLD_S, OLD_S))
    prune(str(tmp_path), 1)
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


# --- freshness


def test_a_report_written_by_the_run_is_fresh_and_an_old_copy_is_not(tmp_path):
    old = tmp_path / "old.xml"
    old.write_text("<old/>")
    os.utime(old, (OLD_S, OLD_S))
    with create(str(tmp_path), "x") as run:
        report = Path(run.path) / "report.xml"
        assert not is_fresh(str(report), run.probe)
        shutil.copy2(old, report)
        assert not is_fresh(str(report), run.probe)
        report.write_text("<new/>")
        assert is_fresh(str(report), run.probe)


def test_the_same_time_is_fresh_and_the_tick_before_is_not(tmp_path):
    report = tmp_path / "report.xml"
    report.write_text("")
    past = OLD_S * SECOND
    os.utime(report, ns=(past, past))
    assert is_fresh(str(report), min(past, report.stat().st_ctime_ns))
    assert not is_fresh(str(report), past + 1)


def test_a_time_in_the_future_makes_no_old_file_fresh(tmp_path):
    report = tmp_path / "report.xml"
    report.write_text("")
    future = (time.time_ns() // SECOND + 3 * 366 * 86_400) * SECOND
    os.utime(report, ns=(future, future))
    changed = report.stat().st_ctime_ns
    while probe(str(tmp_path)) <= changed:  # a coarse clock ticks only now and then
        pass
    mark = probe(str(tmp_path))
    assert not is_fresh(str(report), mark)
    report.write_text("<new/>")
    assert is_fresh(str(report), mark)


def test_a_probe_leaves_nothing_behind(tmp_path):
    before = tmp_path / "before"
    before.write_text("")
    mark = probe(str(tmp_path))
    after = tmp_path / "after"
    after.write_text("")
    assert is_fresh(str(after), mark)
    assert mark >= before.stat().st_mtime_ns
    assert names(tmp_path) == ["after", "before"]
    with pytest.raises(CkdnError, match=r"cannot write .*gone: No such file or directory"):
        probe(str(tmp_path / "gone"))


# --- prune


def test_keep_counts_for_each_check(tmp_path):
    made = {check: [finished(tmp_path, check, NOON + n * SECOND) for n in range(4)] for check in ("a", "b", "a-2")}
    assert prune(str(tmp_path), 2, "a") == made["a"][:2]
    assert names(tmp_path) == sorted(made["a"][2:] + made["b"] + made["a-2"])
    assert sorted(prune(str(tmp_path), 1)) == sorted([made["a"][2], *made["b"][:3], *made["a-2"][:3]])
    assert names(tmp_path) == sorted([made["a"][3], made["b"][3], made["a-2"][3]])
    assert prune(str(tmp_path), 0) == [], "the newest stays"


def test_members_live_as_long_as_their_aggregate(tmp_path):
    members = [finished(tmp_path, "x", NOON + n * SECOND) for n in range(12)]
    old = aggregate(tmp_path, "zz", NOON + SECOND, [members[1], members[10]])
    assert prune(str(tmp_path), 2, "x") == [members[0], *members[2:10]]
    aggregate(tmp_path, "zz", NOON + 20 * SECOND, [members[11]])
    assert prune(str(tmp_path), 1) == [old, members[1], members[10]], "the alias goes first and frees its members"


def test_a_member_is_found_by_its_whole_name(tmp_path):
    first, second = finished(tmp_path, "x", NOON), finished(tmp_path, "x", NOON)
    third = finished(tmp_path, "x", NOON + SECOND)
    aggregate(tmp_path, "all", NOON, [second])  # ends in -2: the first one's name is the beginning of it
    assert prune(str(tmp_path), 1) == [first]
    assert {second, third} <= set(names(tmp_path))


def test_protected_and_live_runs_stay(tmp_path):
    old = finished(tmp_path, "x", NOON)
    older_dead = dead(tmp_path, "x", NOON + 1)
    named = finished(tmp_path, "x", NOON + 2)
    with create(str(tmp_path), "all", NOON + 3):  # an alias on its way: its members started after it
        member = finished(tmp_path, "x", NOON + 4)
        with create(str(tmp_path), "x", NOON + 5):
            newest = finished(tmp_path, "x", NOON + 6)
            assert prune(str(tmp_path), 1, protect=[named]) == [old, older_dead]
            assert {named, member, newest} <= set(names(tmp_path))
    assert len(prune(str(tmp_path), 1, protect=[named])) == 2, "the member, and the run that died unfinished"
    assert [run.name for run in list_runs(str(tmp_path), "x")] == [named, newest]


def test_a_live_run_of_another_process_stays_and_goes_when_it_was_killed(tmp_path):
    code = """if 1:
        import sys
        from ckdn.rundir import create
        held = create(sys.argv[1], "x", 5)
        print(held.name, flush=True)
        sys.stdin.read()
    """
    other = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with other:
        name = other.stdout.readline().strip()
        newest = finished(tmp_path, "x", NOON)
        assert prune(str(tmp_path), 1, "x") == []
        other.kill()
    assert prune(str(tmp_path), 1, "x") == [name]
    assert names(tmp_path) == [newest]


def test_a_dead_run_stays_until_a_newer_one_has_finished(tmp_path):
    killed = dead(tmp_path, "x", NOON + SECOND)
    finished(tmp_path, "x", NOON)
    finished(tmp_path, "y", NOON + 2 * SECOND)
    assert prune(str(tmp_path), 5) == []
    finished(tmp_path, "x", NOON + 3 * SECOND)
    assert prune(str(tmp_path), 5) == [killed]


def test_only_what_is_a_run_directory_is_removed(tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_text("x")
    runs = tmp_path / "runs"
    victim = runs / finished(runs, "x", NOON)
    newest = finished(runs, "x", NOON + 1)
    (victim / "to-outside").symlink_to(outside)
    (victim / "deep/er").mkdir(parents=True)
    (victim / "deep/er/file").write_text("")
    (victim / "deep/to-file").symlink_to(outside / "precious")
    (victim / "deep").chmod(0o500)
    (runs / "20200101T000000Z-x").symlink_to(outside)
    (runs / ".ckdn-gone-20200101T000000Z-x").symlink_to(outside)
    (runs / ".ckdn-gone-notes").mkdir()
    (runs / "notes").mkdir()
    assert prune(str(runs), 1) == [victim.name]
    assert (outside / "precious").read_text() == "x"
    assert names(runs) == ["20200101T000000Z-x", newest, "notes"]
    assert (runs / ".ckdn-gone-notes").is_dir()
    assert not (runs / f".ckdn-gone-{victim.name}").exists()


def test_what_an_earlier_removal_left_is_cleaned(tmp_path):
    newest = finished(tmp_path, "x", NOON)
    half = tmp_path / ".ckdn-gone-20200101T000000Z-x"
    half.mkdir()
    (half / "full.log").write_text("")
    young, old = tmp_path / newest / ".ckdn-tmp-1-1", tmp_path / newest / ".ckdn-tmp-2-2"
    for file in (young, old):
        file.write_text("")
    os.utime(old, (OLD_S, OLD_S))
    os.utime(young, (time.time(), time.time()))
    assert prune(str(tmp_path), 1) == []
    assert not half.exists()
    assert young.exists(), "somebody may be writing it"
    assert not old.exists()


def test_many_may_prune_at_once(tmp_path):
    made = [finished(tmp_path, "x", NOON + n) for n in range(60)]
    removed: list[str] = []
    threads = [threading.Thread(target=lambda: removed.extend(prune(str(tmp_path), 5))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(removed) == sorted(made[:-5]), "each by exactly one"
    assert [run.name for run in list_runs(str(tmp_path))] == made[-5:]


RUNS = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", "a-2", "all", "ü"]),
        st.integers(0, 3 * SECOND),
        st.sampled_from(["finished", "dead", "live"]),
    ),
    max_size=12,
)


@given(
    runs=RUNS,
    links=st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11)), max_size=6),
    keep=st.integers(0, 4),
    only=st.sampled_from([None, "a", "b", "all"]),
    guarded=st.sets(st.integers(0, 11), max_size=2),
)
def test_pruning_keeps_what_it_must_and_removes_the_rest(runs, links, keep, only, guarded):
    folder = Path(tempfile.mkdtemp())
    made, held = [], []
    try:
        for check, offset, state in runs:
            run = create(str(folder), check, NOON + offset)
            made.append(run.name)
            if state == "live":
                held.append(run)
            else:
                run.close()
            if state == "finished" and check != "all":
                (folder / run.name / "digest.json").write_text("{}")
        members: dict[str, set[str]] = {
            name: set()
            for name, (check, _, state) in zip(made, runs, strict=True)
            if (check, state) == ("all", "finished")
        }
        for alias, member in links:
            if alias < len(made) and member < len(made) and made[alias] in members:
                members[made[alias]].add(made[member])
        for name, of in members.items():
            listed = [{"run_dir": str(folder / member)} for member in sorted(of)]
            (folder / name / "aggregate.json").write_text(json.dumps({"members": listed}))
        protect = {made[index] for index in guarded if index < len(made)}
        before = list_runs(str(folder))
        assert sorted(run.name for run in before) == sorted(made)

        removed = set(prune(str(folder), keep, only, protect))

        after = {run.name for run in list_runs(str(folder))}
        assert after == set(made) - removed
        lives = [run.started_ns for run in before if run.name in {live.name for live in held}]
        for check in {run.check for run in before}:
            ended = [run for run in before if run.check == check and run.finished]
            if ended:
                assert ended[-1].name not in removed, "the newest"
            assert not {run.name for run in ended[-max(keep, 1) :]} & removed, "keep"
            if only is not None and check != only:
                assert not {run.name for run in before if run.check == check} & removed, "another check"
        assert not protect & removed
        assert not {live.name for live in held} & removed
        for run in before:
            assert not (run.name in removed and lives and run.started_ns >= min(lives)), "may be a live alias's member"
        for alias, of in members.items():
            if alias in after:
                assert not of & removed, "members live as long as their aggregate"
        listed_names = {name for alias, of in members.items() if alias in after for name in of}
        for check in {run.check for run in before} if only is None else {only}:
            ended = [run for run in before if run.check == check and run.finished]
            for run in ended[: -max(keep, 1)]:
                if run.name.isascii() and run.name not in protect | listed_names:
                    assert run.name in removed or (lives and run.started_ns >= min(lives)), "too many"
    finally:
        for run in held:
            run.close()
        shutil.rmtree(folder)
