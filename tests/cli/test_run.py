"""``ckdn run`` as real processes: results, refusals, and what every ending leaves behind."""

from __future__ import annotations

import json
import os
import pty
import re
import shutil
import signal
import sys
from pathlib import Path

import pytest

from tests.projects import Done, Project, finished, linter

RUFF = '[{"code":"F401","filename":"%s","location":{"row":3,"column":8},"message":"unused","fix":null}]'
ROOT_USER = hasattr(os, "getuid") and os.getuid() == 0
WITHOUT_PRIVILEGE = "setpriv --bounding-set=-dac_override --inh-caps=-dac_override" if ROOT_USER else ""
"""In front of a command: root then has only the rights of any owner."""


# --- results and their exit codes


@pytest.mark.parametrize("code", [0, 1, 2, 3, 125, 126, 127, 128, 200, 255])
def test_the_commands_own_exit_code(project: Project, code: int) -> None:
    project.shell("a", f"exit {code}")
    done = project.run("a")
    assert done.code == code
    assert done.err == ""


@pytest.mark.parametrize(("name", "number"), [("KILL", 9), ("SEGV", 11), ("TERM", 15), ("HUP", 1)])
def test_death_by_a_signal_is_one(project: Project, name: str, number: int) -> None:
    project.shell("a", f"kill -{name} $$")
    done = project.run("a")
    assert (done.code, done.status, done.digest["rc"]) == (1, "error", -number)
    assert f"SIG{name}" in done.digest["status_reason"]


def test_green_by_exit_code_that_is_not_green_is_one(project: Project) -> None:
    project.check("a", "true", parser="mypy")
    done = project.run("a")
    assert (done.code, done.status, done.digest["rc"]) == (1, "parse_mismatch", 0)


def test_failing_findings_under_exit_code_zero_are_no_green(project: Project) -> None:
    project.write("parsers.d/mylint.yaml", linter())
    project.shell("a", "echo a.py:3: bad; echo all fine", parser="mylint")
    done = project.run("a")
    assert (done.code, done.status, done.digest["findings_total"]) == (1, "parse_mismatch", 1)


def test_the_digest_is_one_compact_line_with_sorted_keys(project: Project) -> None:
    project.shell("a", "echo boo; exit 3")
    done = project.run("a")
    assert done.out == (json.dumps(done.digest, sort_keys=True, separators=(",", ":")) + "\n").encode()
    assert done.digest["log_tail"] == ["boo"]


def test_timeout_of_the_check_of_the_config_and_of_the_command_line(project: Project) -> None:
    project.config("[run]\ntimeout = 0.3\ngrace = 0.1\n")
    project.shell("own", "echo begun; sleep 60", timeout=0.2)
    project.shell("common", "echo begun; sleep 60")
    for name, arguments, seconds in [("own", (), "0.2"), ("common", (), "0.3"), ("own", ("--timeout", "0.4"), "0.4")]:
        done = project.run(name, *arguments)
        assert (done.code, done.status, done.digest["timed_out"]) == (124, "error", True)
        assert done.digest["status_reason"] == f"timed out after {seconds} s"
        assert done.digest["log_tail"] == ["begun"]
        assert project.meta(done.digest)["timed_out"] is True


def test_a_missing_command_is_127_and_what_cannot_be_executed_is_126(project: Project) -> None:
    project.write("plain.txt", "no program\n")
    project.check("missing", "no-such-command-anywhere")
    project.check("plain", "./plain.txt")
    project.check("folder", "./")
    for name, code in [("missing", 127), ("plain", 126), ("folder", 126)]:
        done = project.run(name)
        assert (done.code, done.status) == (code, "error")
        assert "cannot start" in done.digest["status_reason"]


def test_a_command_that_policy_refuses_is_126_and_never_starts(project: Project) -> None:
    project.config('[run]\ncommand_policy = "allowlist"\ncommand_allowlist = { prefixes = ["echo "] }\n')
    project.check("good", "echo", "hello")
    project.check("bad", "touch", "touched")
    assert project.run("good").code == 0
    done = project.run("bad")
    assert (done.code, done.status) == (126, "error")
    assert "policy" in done.digest["status_reason"]
    assert not (project.path / "touched").exists()


def test_the_command_gets_its_placeholders_its_environment_and_no_stdin(project: Project) -> None:
    script = (
        "import json, os, sys\n"
        "names = ('CKDN_RUN_DIR', 'PYTHONUNBUFFERED', 'NO_COLOR', 'MINE')\n"
        "print(json.dumps([sys.argv[1:], os.getcwd(), sys.stdin.read(), {n: os.environ.get(n) for n in names}]))\n"
        "sys.exit(1)\n"
    )
    project.write("show.py", script)
    project.check("a", "{python}", "show.py", "{cwd}", "{run_dir}/x", "{other}", "$HOME *", env={"MINE": "{run_dir}"})
    done = project.run("a", stdin=b"never seen")
    arguments, cwd, stdin, variables = json.loads(project.log(done.digest))
    folder = str(project.run_dir(done.digest))
    assert arguments == [str(project.path), folder + "/x", "{other}", "$HOME *"]
    assert (cwd, stdin) == (str(project.path), "")
    assert variables == {"CKDN_RUN_DIR": folder, "PYTHONUNBUFFERED": "1", "NO_COLOR": "1", "MINE": "{run_dir}"}
    assert project.meta(done.digest)["env_keys"] == ["MINE"]


def test_a_check_in_a_subfolder_reports_paths_from_the_root(project: Project) -> None:
    (project.path / "sub").mkdir()
    report = json.dumps(RUFF % f"{project.path}/sub/a.py")
    project.shell("absolute", f"printf %s {report} > $1/ruff.json; exit 1", parser="ruff", cwd="sub")
    project.write("parsers.d/mylint.yaml", linter())
    project.shell("relative", "pwd >&2; echo ../b.py:3: bad; echo c.py:4: bad; exit 1", parser="mylint", cwd="sub")
    assert [r["path"] for r in project.records(project.run("absolute").digest)] == ["sub/a.py"]
    done = project.run("relative")
    assert sorted(r["path"] for r in project.records(done.digest)) == ["b.py", "sub/c.py"]
    assert project.log(done.digest).startswith(str(project.path / "sub").encode())


def test_a_working_directory_that_does_not_exist_is_126(project: Project) -> None:
    project.check("a", "true", cwd="nowhere")
    assert project.run("a").code == 126


# --- what is printed where


def test_quiet_prints_nothing(project: Project) -> None:
    project.shell("a", "exit 5")
    done = project.ckdn("run", "a", "--quiet")
    assert (done.code, done.out, done.err) == (5, b"", "")
    assert len(project.run_names()) == 1


def test_text_format_is_terse_and_no_json(project: Project) -> None:
    project.shell("a", "echo boo; exit 3")
    done = project.ckdn("run", "a", "--format", "text")
    assert (done.code, done.out.decode()) == (3, "a: fail: exit code 3\nboo\n")
    project.shell("b", "true")
    assert project.ckdn("run", "b", "--format=text").out == b"b: pass\n"


def on_a_terminal(project: Project, *arguments: str, env: dict[str, str | None] | None = None) -> tuple[Done, str]:
    """A ckdn whose stderr is a terminal; what came there."""
    ours, theirs = pty.openpty()
    try:
        process = project.start(*arguments, stderr=theirs, env=env or {})
        os.close(theirs)
        done = finished(process)
        os.set_blocking(ours, False)
        seen = b""
        try:
            while part := os.read(ours, 65536):
                seen += part
        except OSError:  # the other side is closed
            pass
        return done, seen.decode()
    finally:
        os.close(ours)


def test_a_terminal_gets_one_verdict_line(project: Project) -> None:
    project.shell("a", "echo boo; exit 3")
    done, seen = on_a_terminal(project, "run", "a", env={"NO_COLOR": "1"})
    project.verify(done)
    assert seen == f"a: fail: exit code 3 ({done.digest['run_dir']})\r\n"
    _, seen = on_a_terminal(project, "run", "a", env={"NO_COLOR": None})
    assert seen.startswith("a: \x1b[1;31mfail\x1b[0m: exit code 3")
    assert seen.count("\n") == 1
    _, seen = on_a_terminal(project, "run", "a", "--quiet")
    assert seen == ""


def test_a_closed_stdout_changes_no_code(project: Project) -> None:
    project.shell("a", "exit 7")
    assert project.shell_ckdn("$CKDN run a >&-").code == 7
    assert project.shell_ckdn("$CKDN run a >&- 2>&- <&-").code == 7
    assert project.shell_ckdn("$CKDN run a >/dev/full").code == 7
    done = project.shell_ckdn("{ $CKDN run a; echo $? >&2; } | :")
    assert done.err == "7\n"
    assert len(project.run_names()) == 4
    assert all((project.runs_dir / name / "digest.json").exists() for name in project.run_names())


def test_with_closed_descriptors_the_log_is_only_the_commands(project: Project) -> None:
    project.shell("a", "echo out; echo err >&2; exit 7")
    project.shell_ckdn("$CKDN run a <&- >&- 2>&-")
    (name,) = project.run_names()
    assert sorted((project.runs_dir / name / "full.log").read_text().split()) == ["err", "out"]


def test_a_locale_without_utf8(project: Project) -> None:
    project.write("grün/ä b.py", "")
    project.write("parsers.d/mylint.yaml", linter())
    project.shell("a", "printf 'grün/ä b.py:3: schön \\342\\234\\223\\n'; exit 1", parser="mylint")
    env = {"LC_ALL": "C", "PYTHONIOENCODING": "ascii"}
    done = project.run("a", env=env)
    assert done.digest["findings"][0]["id"] == "grün/ä b.py:3"
    assert done.digest["findings"][0]["message"] == "schön ✓"
    text = project.ckdn("run", "a", "--format", "text", env=env)
    assert "schön ✓" in text.out.decode()


def test_spaces_and_unicode_in_every_path(project: Project, tmp_path: Path, shared_cache: Path) -> None:
    odd = Project(tmp_path / "ein Projekt ü", project.home, shared_cache)
    odd.write("parsers.d/mylint.yaml", linter())
    odd.config('[run]\nruns_dir = "die Läufe"\n')
    (odd.path / "unter ordner").mkdir()
    odd.shell("a", 'echo "$PWD/x y.py:3: bad"; test -d "$1" && exit 1', parser="mylint", cwd="unter ordner")
    done = odd.run("a")
    assert done.digest["run_dir"].startswith("die Läufe/")
    assert done.digest["findings"][0]["id"] == "unter ordner/x y.py:3"


def test_a_folder_and_arguments_that_are_no_utf8(project: Project, shared_cache: Path) -> None:
    folder = os.fsdecode(os.fsencode(project.path) + b"/\xff\xfe")
    odd = Project(Path(folder), project.home, shared_cache)
    odd.shell("a", 'echo "$PWD"; exit 1')
    odd.config(odd.path.joinpath("ckdn.toml").read_text() + '[run]\nruns_dir = "r"\n')
    done = odd.run("a", "--", b"\xff\x01\xc3\xa9")
    assert done.digest["notes"] == ["partial: extra arguments: \ufffd?é"]
    assert odd.meta(done.digest)["extra_args"] == ["\ufffd?é"]


# --- extra arguments and partial runs


def test_a_run_with_extra_arguments_is_partial(project: Project) -> None:
    project.check("a", "echo", "x")
    whole = project.run("a")
    partial = project.run("a", "--", "--config", "-k", "a b")
    assert partial.digest["notes"][0] == "partial: extra arguments: --config -k a b"
    meta = project.meta(partial.digest)
    assert meta["partial"] == "extra arguments: --config -k a b"
    assert meta["extra_args"] == ["--config", "-k", "a b"]
    assert meta["command"] == ["echo", "x", "--config", "-k", "a b"]
    assert project.log(partial.digest) == b"x --config -k a b\n"
    assert (project.runs_dir / "latest").readlink().name == Path(whole.digest["run_dir"]).name
    assert project.ckdn("show", "a").out == whole.out
    assert project.ckdn("show").out == whole.out
    assert "partial" not in project.meta(project.run("a", "--").digest)


def test_a_partial_run_alone_is_nothing_to_show(project: Project) -> None:
    project.check("a", "echo")
    partial = project.run("a", "--", "x")
    assert not (project.runs_dir / "latest").exists()
    assert "no whole run" in project.refused("show", "a")[0]
    assert "no run is stored" in project.refused("show")[0]
    assert project.ckdn("show", Path(partial.digest["run_dir"]).name).out == partial.out


def test_a_variable_that_narrows_the_tool_makes_a_run_partial(project: Project) -> None:
    project.write("parsers.d/mylint.yaml", linter(more="env_narrows: [MYLINT_ONLY]\n"))
    project.shell("a", "echo all fine", parser="mylint")
    project.shell("off", "echo all fine", parser="mylint", env={"MYLINT_ONLY": ""})
    project.shell("on", "echo all fine", parser="mylint", env={"MYLINT_ONLY": "x"})
    assert "notes" not in project.run("a").digest
    assert "notes" not in project.run("a", env={"MYLINT_ONLY": ""}).digest
    assert project.run("a", env={"MYLINT_ONLY": "x"}).digest["notes"] == ["partial: MYLINT_ONLY is set"]
    assert project.run("on").digest["notes"] == ["partial: MYLINT_ONLY is set"]
    assert "notes" not in project.run("off", env={"MYLINT_ONLY": "x"}).digest


# --- reports in the run directory


def report_check(project: Project, script: str, **keys: object) -> None:
    """A ruff check whose command does something to ``$1/ruff.json``."""
    project.write("good.json", RUFF % "a.py")
    project.write("clean.json", "[]")
    os.utime(project.path / "clean.json", (1_000_000_000, 1_000_000_000))
    project.shell("a", script, parser="ruff", **keys)


def test_a_report_that_was_written_is_read(project: Project) -> None:
    report_check(project, "cp good.json $1/ruff.json; exit 1")
    done = project.run("a")
    assert done.digest["findings"] == [{"id": "a.py:3:8 F401", "kind": "lint_violation", "message": "unused"}]
    (report,) = project.meta(done.digest)["reports"]
    assert (report["path"], report["bytes"]) == ("ruff.json", len(RUFF % "a.py"))
    assert done.digest["artifacts"] == ["full.log", "findings.jsonl", "ruff.json"]


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (":", "ruff.json is missing"),
        ("cp -p clean.json $1/ruff.json", "stale"),
        ("mkfifo $1/ruff.json", "no regular file"),
        ("mkdir $1/ruff.json", "no regular file"),
        ("ln -s ../../clean.json $1/ruff.json", "link out of the run directory"),
        ("ln -s /dev/zero $1/ruff.json", "link out of the run directory"),
        ("ln -s nothing $1/ruff.json", ""),
        ("ln -s ruff.json $1/ruff.json", ""),
        ("printf '[{' > $1/ruff.json", ""),
        (": > $1/ruff.json", ""),
        ("echo '{}' > $1/ruff.json", ""),
        ("cp clean.json $1/report.json", "ruff.json is missing"),
    ],
)
@pytest.mark.parametrize("code", [0, 1])
def test_a_report_that_cannot_be_trusted_is_no_result(project: Project, script: str, reason: str, code: int) -> None:
    report_check(project, f"{script}; exit {code}")
    done = project.run("a")
    assert done.status == ("error" if code else "parse_mismatch")
    assert reason in done.digest["status_reason"]


def test_allow_stale_takes_an_old_report(project: Project) -> None:
    report_check(project, "cp -p clean.json $1/ruff.json", allow_stale=True)
    assert project.run("a").status == "pass"


def test_a_report_may_be_a_link_inside_the_run_directory(project: Project) -> None:
    report_check(project, "cp clean.json $1/real.json; ln -s real.json $1/ruff.json")
    assert project.run("a").status == "pass"


def test_a_report_under_another_name_by_the_specs_option(project: Project) -> None:
    report_check(project, "mkdir $1/out; cp clean.json $1/out/r.json", report="{run_dir}/out/r.json")
    project.shell("b", "cp clean.json $1/r.json", parser="ruff", report="r.json")
    project.shell("c", ":", parser="ruff", report="../../clean.json")
    assert project.run("a").status == "pass"
    assert project.run("b").status == "pass"
    assert "outside the run directory" in project.run("c").digest["status_reason"]


# --- reports elsewhere


def test_reports_elsewhere_are_copied_and_read(project: Project) -> None:
    report_check(project, "mkdir -p out/x; cp good.json out/x/r.json; exit 1", reports=["out/*/*.json"])
    done = project.run("a")
    assert done.digest["findings_total"] == 1
    assert project.log(done.digest, "r.json") == (project.path / "good.json").read_bytes()
    assert [r["path"] for r in project.meta(done.digest)["reports"]] == ["r.json"]


def test_several_reports_are_read_as_one_and_old_ones_are_counted(project: Project) -> None:
    script = "mkdir -p o1 o2 o3; cp good.json o1/r.json; cp good.json o2/r.json; cp -p clean.json o3/r.json; exit 1"
    report_check(project, script, reports=["o*/r.json"])
    done = project.run("a")
    assert len(project.records(done.digest)) == 2
    assert done.digest["notes"] == ["not read: 1 report that matches o*/r.json is older than this run"]
    assert sorted(r["path"] for r in project.meta(done.digest)["reports"]) == ["r-2.json", "r.json"]


def test_a_report_that_two_patterns_match_is_read_once(project: Project) -> None:
    report_check(project, "mkdir -p o1; cp good.json o1/r.json; exit 1", reports=["o*/r.json", "**/r.json"])
    assert len(project.records(project.run("a").digest)) == 1


def test_no_fresh_report_elsewhere_is_input_missing(project: Project) -> None:
    report_check(project, "mkdir -p o; cp -p clean.json o/r.json", reports=["o/*.json"])
    project.shell("old", "mkdir -p o; cp -p clean.json o/r.json", parser="ruff", reports=["o/*.json"], allow_stale=True)
    done = project.run("a")
    assert done.status == "parse_mismatch"
    assert "no report that this run wrote matches" in done.digest["status_reason"]
    assert done.digest["notes"] == ["not read: 1 report that matches o/*.json is older than this run"]
    assert project.run("old").status == "pass"


def test_reports_elsewhere_never_leave_the_project(project: Project, tmp_path: Path) -> None:
    outside = tmp_path / "outside.json"
    outside.write_text("[]")
    script = f"mkdir -p o; touch {outside}; ln -sf {outside} o/link.json; rm -f o/fifo.json; mkfifo o/fifo.json"
    report_check(project, script, reports=["o/*.json"])
    done = project.run("a")
    assert done.status == "parse_mismatch"
    assert done.digest["notes"] == ["not read: 2 matches of o/*.json are no regular file below the project"]
    assert [p.name for p in project.run_dir(done.digest).glob("*.json")].count("link.json") == 0


# --- the log


def test_streams_are_kept_apart_where_a_spec_reads_one_of_them(project: Project) -> None:
    project.write("parsers.d/mylint.yaml", linter(more="inputs: {stdout: {}}\n"))
    project.shell("a", "echo a.py:1: out; echo b.py:2: err >&2; exit 1", parser="mylint")
    done = project.run("a")
    assert [r["path"] for r in project.records(done.digest)] == ["a.py"]
    assert project.log(done.digest, "stdout.log") == b"a.py:1: out\n"
    assert project.log(done.digest, "stderr.log") == b"b.py:2: err\n"
    assert sorted(project.log(done.digest).splitlines()) == [b"a.py:1: out", b"b.py:2: err"]
    project.shell("b", "exit 1")
    assert not (project.run_dir(project.run("b").digest) / "stdout.log").exists()


def test_a_large_log(project: Project) -> None:
    line = "x" * 99
    code = (
        f"import sys; sys.stdout.write({line!r} + chr(10)) if 0 else sys.stdout.write(({line!r} + chr(10)) * 300_000)"
    )
    project.check("a", "{python}", "-c", code + "; sys.exit(1)")
    project.check("m", "{python}", "-c", code + "; print('a.py:1: error: bad  [x]'); sys.exit(1)", parser="mypy")
    done = project.run("a")
    assert project.meta(done.digest)["log_bytes"] == 30_000_000
    assert done.digest["log_tail"] == [line] * 40
    assert project.run("m").digest["findings_total"] == 1


def test_a_log_past_its_bound_stops_the_command(project: Project) -> None:
    project.config("[run]\nmax_log_bytes = 100000\ngrace = 0.1\n")
    project.check("a", "yes")
    done = project.run("a")
    assert (done.code, done.status) == (1, "error")
    assert "100000 bytes" in done.digest["status_reason"]
    assert len(project.log(done.digest)) == 100_000


def test_a_binary_log(project: Project) -> None:
    code = (
        "import sys; sys.stdout.buffer.write(bytes(range(256)) * 20 + bytes([10, 255, 254])"
        " + b' bad \\x1b[31mred\\x1b[0m \\x1b]0;title\\x07 \\xe2\\x80\\xae back\\n'); sys.exit(1)"
    )
    project.check("a", "{python}", "-c", code)
    done = project.run("a")
    shown = "".join(done.digest["log_tail"])
    assert shown.endswith(" bad red   back")
    assert all(c.isprintable() for c in shown)
    assert project.log(done.digest).startswith(bytes(range(256)))
    log = project.ckdn("show", "a", "--log")
    assert log.out.decode().splitlines()[-1].endswith(" bad red   back")


def test_a_secret_is_masked_in_what_is_shown_and_not_in_the_log(project: Project) -> None:
    token = "ghp_" + "a1B2c3D4e5" * 4
    project.shell("a", f"echo token {token}; exit 1")
    done = project.run("a")
    assert done.digest["log_tail"] == ["token [masked]"]
    assert token.encode() in project.log(done.digest)
    for arguments in (("--log",), ("--log", "--tail", "1")):
        assert project.ckdn("show", "a", *arguments).out == b"token [masked]\n"
    project.write("parsers.d/mylint.yaml", linter())
    project.shell("b", f"echo a.py:1: token {token}; exit 1", parser="mylint")
    found = project.run("b")
    assert token.encode() not in (project.run_dir(found.digest) / "findings.jsonl").read_bytes() + found.out


def test_a_secret_on_the_command_line_is_not_in_the_documents(project: Project) -> None:
    token = "ghp_" + "a1B2c3D4e5" * 4
    project.shell("a", ": ; exit 1", env={"MY_SETTING": token})
    done = project.run("a", "--", token)
    stored = b"".join(p.read_bytes() for p in project.run_dir(done.digest).glob("*.json*"))
    assert token.encode() not in stored


# --- equal output, equal bytes


def test_equal_output_gives_equal_bytes(project: Project) -> None:
    project.write("parsers.d/mylint.yaml", linter())
    project.shell("a", "echo b.py:2: two; echo a.py:1: one; exit 1", parser="mylint")
    one, two = project.run("a"), project.run("a")
    neutral = [re.sub(rb'"run_dir":"[^"]+"', b"", done.out) for done in (one, two)]
    assert neutral[0] == neutral[1]
    assert one.digest["run_dir"] != two.digest["run_dir"]
    files = [(project.run_dir(done.digest) / "findings.jsonl").read_bytes() for done in (one, two)]
    assert files[0] == files[1]


def test_old_runs_of_a_check_are_pruned(project: Project) -> None:
    project.config("[run]\nkeep = 2\n")
    project.shell("a", "exit 1")
    project.shell("b", "true")
    other = project.run("b")
    made = [Path(project.run("a").digest["run_dir"]).name for _ in range(4)]
    assert set(project.run_names()) == {*made[-2:], Path(other.digest["run_dir"]).name}
    assert (project.runs_dir / "latest").readlink().name == made[-1]


# --- signals to ckdn, and two at once


def begun(project: Project, name: str, **how: object) -> object:
    """A run whose command has said that it is there, through a FIFO."""
    os.mkfifo(project.path / "fifo")
    process = project.start("run", name, **how)  # type: ignore[arg-type]
    with (project.path / "fifo").open("rb") as file:
        assert file.read(1) == b"+"
    return process


@pytest.mark.parametrize(("signum", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_to_ckdn_leaves_a_digest(project: Project, signum: signal.Signals, code: int) -> None:
    project.shell("a", "echo begun; printf + > fifo; sleep 60")
    process = begun(project, "a")
    process.send_signal(signum)  # type: ignore[attr-defined]
    done = finished(process)  # type: ignore[arg-type]
    project.verify(done)
    assert (done.code, done.status, done.digest["rc"]) == (code, "error", code)
    assert done.digest["interrupted"] is True
    assert signum.name in done.digest["status_reason"]
    assert done.digest["log_tail"] == ["begun"]
    assert done.err == ""


def test_a_second_run_of_a_check_is_refused_with_the_holders_pid(project: Project) -> None:
    project.shell("a", "printf + > fifo; sleep 60")
    project.shell("b", "true")
    process = begun(project, "a")
    try:
        (line,) = project.refused("run", "a")
        assert line == f"ckdn: check `a` is already running (pid {process.pid})"  # type: ignore[attr-defined]
        assert project.run("b").code == 0
    finally:
        process.send_signal(signal.SIGTERM)  # type: ignore[attr-defined]
        finished(process)  # type: ignore[arg-type]
    project.shell("c", "true")
    assert project.run("c").code == 0


def test_what_outlives_the_command_is_named_and_stopped(project: Project) -> None:
    project.shell("a", "sleep 60 & exit 0")
    done = project.run("a")
    assert (done.code, done.status) == (0, "pass")
    assert done.digest["notes"] == ["still running after the command had ended, stopped: sleep"]


# --- refusals


def test_refusals_say_what_and_where(project: Project) -> None:
    project.config('[check.lint]\ncommand = "true"\nparser = "generic"\n[check.all]\nmembers = ["lint"]\n')
    cases = {
        ("run",): "which check?",
        ("run", "lnt"): "ckdn.toml: no check `lnt`; did you mean lint?",
        ("run", "lint", "nope"): "no check `nope`",
        ("run", "lint", "--all"): "--all beside names",
        ("run", "all", "--", "x"): "extra arguments for several checks",
        ("run", "lint", "--timeout", "0"): "positive number",
        ("run", "lint", "--timeout", "nan"): "positive number",
        ("run", "lint", "--timeout", "inf"): "positive number",
        ("run", "lint", "--timeout"): "--timeout needs a value",
        ("run", "lint", "--format", "xml"): "one of json, text",
        ("run", "lint", "--quite"): "did you mean --quiet?",
        ("run", "lint", "--cwd", "nowhere"): "nowhere does not exist",
        ("run", "lint", "--config", "none.toml"): "none.toml: no such file",
        ("run", ""): "no check",
        ("run", "../x"): "no check",
    }
    for arguments, text in cases.items():
        (line,) = project.refused(*arguments)
        assert text in line
    assert not project.runs_dir.exists()
    assert not (project.path / "nowhere").exists()


def test_every_problem_of_a_config_is_told_at_once_with_its_line(project: Project) -> None:
    project.config(
        '[run]\nkep = 3\n[check.a]\ncommand = "echo \'x"\nparser = "rufff"\n[check.b]\ncommand = "true"\n'
        'parser = "ruff"\nreprt = "x"\n'
    )
    lines = project.refused("run", "b")
    assert [line.split(": ")[1].split(":")[:2] for line in lines] == [
        ["ckdn.toml", "2"], ["ckdn.toml", "4"], ["ckdn.toml", "5"], ["ckdn.toml", "9"]
    ]  # fmt: skip
    assert "did you mean ruff?" in lines[2]
    assert "did you mean report" in lines[3]


def test_no_config_is_refused(project: Project) -> None:
    (line,) = project.refused("run", "a")
    assert "no ckdn.toml" in line
    assert not project.runs_dir.exists()


@pytest.mark.skipif(ROOT_USER and shutil.which("setpriv") is None, reason="root may write everywhere")
def test_a_runs_dir_that_cannot_be_written_is_refused(project: Project) -> None:
    project.check("a", "true")
    project.path.chmod(0o555)
    done = project.shell_ckdn(f"{WITHOUT_PRIVILEGE} $CKDN run a")
    assert (done.code, done.out) == (2, b""), done
    assert done.err == f"ckdn: cannot write runs_dir {project.runs_dir}: Permission denied\n"
    assert not project.runs_dir.exists()


def test_a_runs_dir_that_is_a_file_is_refused(project: Project) -> None:
    project.check("a", "true")
    project.write(".agent-runs", "")
    done = project.ckdn("run", "a")
    assert (done.code, done.out) == (2, b"")
    assert done.err.startswith("ckdn: cannot write runs_dir")


def test_help_of_run(project: Project) -> None:
    for arguments in (("run", "--help"), ("run", "a", "-h")):
        done = project.ckdn(*arguments)
        assert done.code == 0
        assert done.out.startswith(b"usage: ckdn run")
    assert project.shell_ckdn("$CKDN run --help >/dev/full").code == 0
    assert project.shell_ckdn("$CKDN run --help >&-").code == 0


# --- which config and folder


def test_the_config_is_found_from_a_subfolder(project: Project) -> None:
    (project.path / ".git").mkdir()
    (project.path / "deep/er").mkdir(parents=True)
    project.shell("a", "pwd; exit 1")
    done = project.ckdn("run", "a", cwd=project.path / "deep/er")
    project.verify(done)
    assert done.digest["log_tail"] == [str(project.path)]
    assert project.run_names()


@pytest.mark.parametrize("by_environment", [False, True])
def test_config_and_cwd_may_be_named(project: Project, by_environment: bool, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    config = elsewhere / "my.toml"
    config.write_text('[check.a]\ncommand = "pwd"\nparser = "generic"\n')
    if by_environment:
        done = project.ckdn("run", "a", env={"CKDN_CONFIG": str(config), "CKDN_CWD": str(project.path)}, cwd=tmp_path)
    else:
        done = project.ckdn("run", "a", "--config", str(config), f"--cwd={project.path}", cwd=tmp_path)
    project.verify(done)
    assert project.log(done.digest) == f"{project.path}\n".encode()


def test_other_forms_of_config(project: Project) -> None:
    project.write("ckdn.yaml", "check:\n  a: {command: 'true', parser: generic}\n")
    assert project.run("a").code == 0
    (project.path / "ckdn.yaml").unlink()
    project.write("pyproject.toml", '[tool.ckdn.check.b]\ncommand = "true"\nparser = "generic"\n')
    assert project.run("b").code == 0
    project.write("ckdn.toml", "")
    assert "two configs in one folder" in project.refused("run", "b")[0]


def test_the_default_check(project: Project) -> None:
    project.config('[run]\ndefault = "b"\n')
    project.shell("a", "exit 3")
    project.shell("b", "exit 4")
    assert project.ckdn("run").code == 4


def test_a_runs_dir_that_is_a_link(project: Project, tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    project.runs_dir.symlink_to(tmp_path / "far")
    report_check(project, "cp good.json $1/ruff.json; exit 1")
    done = project.run("a")
    assert done.digest["findings_total"] == 1
    assert (tmp_path / "far" / Path(done.digest["run_dir"]).name / "digest.json").exists()


def test_a_runs_dir_outside_the_project(project: Project, tmp_path: Path) -> None:
    project.config(f"[run]\nruns_dir = {json.dumps(str(tmp_path / 'far'))}\n")
    report_check(project, "cp good.json $1/ruff.json; exit 1")
    done = project.run("a")
    assert done.digest["run_dir"].startswith(str(tmp_path / "far"))


def test_what_the_config_should_change_is_said(project: Project) -> None:
    project.config('[run]\ncommand_policy = "workspace"\n')
    project.check("a", "true")
    assert "workspace" in project.run("a").digest["notes"][0]


# --- defects of ckdn itself


BROKEN = """
import sys
import ckdn.app.run
from ckdn.cli import main
def interpret(*args):
    raise {error}
ckdn.app.run.interpret = interpret
sys.exit(main(["run", "a"]))
"""


@pytest.mark.parametrize(
    ("code", "status"),
    [(0, "parse_mismatch"), (1, "error")],
)
@pytest.mark.parametrize("error", ["ZeroDivisionError('oh')", "RecursionError('deep')", "MemoryError()"])
def test_a_parser_that_crashes_is_a_result_that_is_not_understood(
    project: Project, code: int, status: str, error: str
) -> None:
    """Fault injection: there is no output that is known to crash the engine."""
    project.shell("a", f"exit {code}")
    project.command = lambda *_: [sys.executable, "-c", BROKEN.format(error=error)]  # type: ignore[method-assign]
    done = project.ckdn()
    project.verify(done)
    assert done.status == status
    assert f"the parser crashed ({error.partition('(')[0]}" in done.digest["status_reason"]
    assert "traceback.txt" in done.digest["artifacts"]
    assert b"Traceback (most recent call last)" in project.log(done.digest, "traceback.txt")
    assert (done.code, done.err) == (1, "")


SLOW = """
import sys
import ckdn.app.run
from ckdn.cli import main
ckdn.app.run.PARSE_SECONDS = {seconds}
interpret = ckdn.app.run.interpret
def slow(*given):
    print("+", end="", file=sys.stderr, flush=True)
    while True:
        facts = interpret(*given)
ckdn.app.run.interpret = slow
sys.exit(main(["run", "a"]))
"""
"""A ckdn that reads the output again and again; ``+`` on stderr when it begins."""


@pytest.mark.parametrize("code", [0, 1])
def test_reading_has_a_deadline_of_its_own(project: Project, code: int) -> None:
    project.shell("a", f"echo a.py:3: error: bad; exit {code}", parser="mypy", timeout=1)
    project.command = lambda *_: [sys.executable, "-c", SLOW.format(seconds=1.5)]  # type: ignore[method-assign]
    done = project.ckdn()
    project.verify(done)
    assert (done.code, done.status, done.digest["rc"]) == (1, "error", code)
    assert done.digest["status_reason"].startswith("reading the output took longer than 1.5 s; ")


@pytest.mark.parametrize(("signum", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_reading(project: Project, signum: signal.Signals, code: int) -> None:
    project.shell("a", "exit 1", parser="mypy")
    project.command = lambda *_: [sys.executable, "-c", SLOW.format(seconds=100)]  # type: ignore[method-assign]
    process = project.start()
    assert process.stderr is not None
    assert process.stderr.read(1) == b"+"
    process.send_signal(signum)
    done = finished(process)
    project.verify(done)
    assert (done.code, done.status, done.digest["interrupted"]) == (code, "error", True)
    assert done.digest["status_reason"] == f"interrupted by {signum.name} while the output was read"


def test_a_defect_elsewhere_is_exit_three_and_one_line(project: Project, tmp_path: Path) -> None:
    project.shell("a", "true")
    script = BROKEN.replace("app.run.interpret", "app.run.decide").format(error="ZeroDivisionError('oh')")
    project.command = lambda *_: [sys.executable, "-c", script]  # type: ignore[method-assign]
    done = project.ckdn(env={"TMPDIR": str(tmp_path)})
    assert (done.code, done.out) == (3, b"")
    assert done.err.count("\n") == 1
    match = re.search(r"this is a bug in ckdn \(ZeroDivisionError: oh\).* (/\S+)$", done.err.strip())
    assert match
    assert "Traceback" in Path(match[1]).read_text()
