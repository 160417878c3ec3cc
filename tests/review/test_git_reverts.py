"""What a person's ``git revert`` took back: its numbers go to others, on which no undo, revert or why may act."""

from __future__ import annotations

from harness import Workspace, chase, refused, take_ok, unchanged

POST = """journal_add_double(
    date="2025-01-{0}", description="{1}", debit_account=5020, credit_account=1010, amount=1)
"""
RENT = """journal_add_double(
    date="2025-01-31", description="RENT", debit_account=5150, credit_account=3100, amount=1200,
    confidence=0.9, evidence="monthly", status="auto-confirmed")"""
TWO = "2025-01-002"
FOUR = "2025-01-004"


def add(ws: Workspace, day: str, words: str) -> None:
    ws.ok("journal", "add", day, words, "5220=10", "1590=-10")


def take_back(ws: Workspace, commit: str = "HEAD") -> str:
    """Revert a commit by plain git: how the new one is called in messages."""
    ws.git("revert", "--no-edit", commit)
    return f"by git, in commit {ws.head()[:7]}"


def in_order(ws: Workspace) -> None:
    """Every invariant holds once somebody answers for what was done by git alone."""
    for commit in ws.git("log", "--format=%H", "--grep=This reverts commit").split():
        ws.ok("accept", commit, "--reason", "meant so")
    ws.in_order()


def statuses(ws: Workspace) -> dict[str, str]:
    return {entry["entry_id"]: entry["status"] for entry in ws.entries()}


def test_undo_leaves_the_entry_that_got_the_number(ws: Workspace) -> None:
    add(ws, "2025-01-14", "First")
    add(ws, "2025-01-15", "Depreciation")
    by = take_back(ws)
    ws.script(RENT, name="accrue")
    with unchanged(ws):
        refused(ws("queue", "undo", "--dry-run"), 3, "Depreciation", f"was taken back already {by}", "undo --older")
        refused(ws("queue", "undo"), 3, "Depreciation", f"was taken back already {by}", "undo --older")
    assert "took back: post: 2025-01-001 First" in ws.ok("queue", "undo", "--older").err
    found = statuses(ws)
    assert found["2025-01-001"] == "voided" and found[TWO] == "auto-confirmed"
    refused(ws("queue", "undo", "--older"), 3, "there is no decision to take back")
    in_order(ws)


def test_undo_leaves_an_entry_that_is_the_same_but_for_its_maker(ws: Workspace) -> None:
    """The same words, day and amounts under the same number, by another act."""
    add(ws, "2025-01-15", "Depreciation")
    by = take_back(ws)
    add(ws, "2025-01-15", "Depreciation")
    ws.ok("queue", "undo")
    with unchanged(ws):
        refused(ws("queue", "undo"), 3, f"was taken back already {by}")
    in_order(ws)


def test_undo_after_git_took_back_a_correction_whose_number_a_bank_line_got(posted: Workspace) -> None:
    posted.ok("queue", "approve", TWO)
    posted.ok("queue", "correct", FOUR, "--account", "5070")
    by = take_back(posted)
    posted.drop("more.csv", chase(("01/25/2025", "NEW SHOP", "-77.00")))
    posted.run("ingest")
    with unchanged(posted):
        refused(posted("queue", "undo"), 3, f"correct: {FOUR}", f"was taken back already {by}")
    assert f"took back: confirm: {TWO}" in posted.ok("queue", "undo", "--older").err
    assert [e["status"] for e in posted.entries() if e["description"] == "NEW SHOP"] == ["pending-review"]
    in_order(posted)


def test_undo_after_git_took_back_a_void_or_a_confirmation(posted: Workspace) -> None:
    posted.ok("queue", "approve", FOUR)
    for words in (["journal", "void", "2025-01-001", "--reason", "oops"], ["queue", "approve", TWO]):
        posted.ok(*words)
        by = take_back(posted)
        with unchanged(posted):
            refused(posted("queue", "undo"), 3, f"was taken back already {by}")
    assert f"took back: confirm: {FOUR}" in posted.ok("queue", "undo", "--older").err
    in_order(posted)


def test_undo_after_git_took_back_what_was_not_the_last_commit(posted: Workspace) -> None:
    """There a revert keeps the lines that are only ever appended to, such as what attests the decision."""
    posted.ok("queue", "approve", "2025-01-001")
    reverted = posted.head()
    posted.ok("queue", "approve", FOUR)
    by = take_back(posted, reverted)
    posted.ok("queue", "undo")
    with unchanged(posted):
        refused(posted("queue", "undo"), 3, f"was taken back already {by}")


def test_undo_names_what_it_passes_over(posted: Workspace) -> None:
    """Else who asks for the act before the acceptance takes it for the one that git took back."""
    posted.ok("queue", "approve", FOUR)
    posted.ok("queue", "approve", TWO)
    by = take_back(posted)
    posted.ok("accept", "HEAD", "--reason", "meant so")
    passed = f"which was taken back already {by}"
    with unchanged(posted):
        told = posted.ok("queue", "undo", "--older", "--dry-run").err.splitlines()
        assert len(told) == 2 and f"it would take back: confirm: {FOUR}" in told[0]
        assert told[1].startswith(f"passed over: confirm: {TWO}") and told[1].endswith(passed)
    done = posted.json("queue", "undo", "--older")
    assert done["entries"] == [FOUR] and passed in done["said"][1] and len(done["said"]) == 2
    refused(posted("queue", "undo", "--older"), 3, "there is no decision to take back; passed over", passed)
    posted.in_order()


def test_undo_after_a_commit_by_hand_changed_what_it_wrote(ws: Workspace) -> None:
    """Nobody says then that git took it back, but that it may be so, and what to do."""
    add(ws, "2025-01-15", "Depreciation")
    path = "books/2025/01/journal.csv"
    ws.put(path, ws.read(path).replace(",Depreciation,", ",Van,"))
    ws.commit(path)
    with unchanged(ws):
        refused(ws("queue", "undo"), 3, f"taken back or changed by git, in commit {ws.head()[:7]}", "Decide anew")


def test_undo_says_of_what_git_took_back_in_part_what_to_do(posted: Workspace) -> None:
    """Of two entries that were confirmed at once one still is: undo leaves both, and names what was decided."""
    posted.ok("queue", "approve", "2025-01-001")
    posted.ok("queue", "approve", TWO, FOUR)
    decided, path = posted.head()[:7], "books/2025/01/journal.csv"
    rows = posted.read(path).splitlines(keepends=True)
    posted.put(path, "".join(r.replace("user-confirmed", "pending-review") if r.startswith(TWO) else r for r in rows))
    posted.commit(path)
    take_ok(posted, "accept", "HEAD", "--reason", "meant so")
    [took, passed] = posted.json("queue", "undo", "--older")["said"]
    assert "took back: confirm: 2025-01-001" in took and "passed over: confirm: 2 entries" in passed
    assert (
        "in part by git, in commit" in passed
        and f"Decide anew about what is there of it (git show {decided})" in passed
    )
    found = statuses(posted)
    assert (found[TWO], found[FOUR]) == ("pending-review", "user-confirmed")


def test_undo_of_what_git_brought_back(posted: Workspace) -> None:
    """A decision whose revert was reverted stands; so does one whose undo was reverted."""
    posted.ok("queue", "approve", TWO)
    before = statuses(posted)
    take_back(posted)
    take_back(posted)
    posted.ok("queue", "undo")
    assert statuses(posted)[TWO] == "voided"
    take_back(posted)
    assert statuses(posted) == before
    assert f"took back: confirm: {TWO}" in posted.ok("queue", "undo").err
    assert statuses(posted)[TWO] == "voided"


def test_undo_after_git_took_back_a_setting(posted: Workspace) -> None:
    posted.ok("queue", "approve", TWO)
    posted.ok("config", "set", "review.remind_after", "1h")
    by = take_back(posted)
    with unchanged(posted):
        refused(posted("queue", "undo"), 3, "config: review.remind_after", f"was taken back already {by}", "--older")
    posted.ok("queue", "undo", "--older")
    in_order(posted)


def test_a_script_that_changed_a_row_since_is_not_git(posted: Workspace) -> None:
    """An act whose entry a run voided is named as before; so is one beside a commit by hand that changed none."""
    posted.ok("queue", "approve", FOUR)
    posted.put("notes.txt", "by hand")
    posted.commit("notes.txt")
    posted.script(f'journal_void("{FOUR}", "twice")')
    with unchanged(posted):
        refused(posted("queue", "undo"), 3, f"{FOUR} was voided since")


def test_revert_of_a_run_leaves_what_another_file_brought(ws: Workspace) -> None:
    ws.drop("feb.csv", chase(("02/04/2025", "ALPHA", "-6.00"), ("02/03/2025", "STAPLES", "-5.00")))
    run = ws.run("ingest")["run_id"]
    by = take_back(ws)
    ws.drop("other.csv", chase(("02/11/2025", "DELTA", "-88.00"), ("02/10/2025", "GAMMA", "-77.00")))
    other = ws.run("ingest")["run_id"]
    for options in (["--plan"], ["--yes"], ["--yes", "--alone"]):
        with unchanged(ws):
            refused(ws("revert", run, *options), 3, f"nothing of run {run} is left", f"was taken back already {by}")
    assert set(statuses(ws).values()) == {"pending-review"}
    assert [each["run"] for each in ws.json("revert", other, "--plan")["runs"]] == [other]


def test_revert_of_a_run_leaves_a_reader_that_git_took_back(ws: Workspace) -> None:
    """Its number is that of a run by now that read nothing."""
    first = ws.script(POST.format("03", "nails"), name="first")["run_id"]
    reads = 'seen = journal_query(date_from="2025-01-03", date_to="2025-01-03")\n'
    ws.script(f"{reads}if seen:\n  {POST.format('05', 'more nails')}", name="second")
    take_back(ws)
    third = ws.script(POST.format("06", "paint"), name="third")["run_id"]
    done = ws.json("revert", first, "--yes")
    assert [each["run"] for each in done["runs"]] == [first] and third
    assert {e["description"]: e["status"] for e in ws.entries()}["paint"] != "voided"
    in_order(ws)


def test_revert_of_a_run_takes_what_git_left_of_it(ws: Workspace) -> None:
    """Of two entries somebody took out one by hand, and its number went to another run's entry."""
    first = ws.script(f"{POST.format('03', 'nails')}\n{POST.format('04', 'screws')}", name="first")["run_id"]
    path = "books/2025/01/journal.csv"
    ws.put(path, "".join(row for row in ws.read(path).splitlines(keepends=True) if "screws" not in row))
    ws.commit(path)
    take_ok(ws, "recover", "--forget")
    ws.script(POST.format("06", "paint"), name="third")
    assert [e["description"] for e in ws.entries() if e["entry_id"] == TWO] == ["paint"]
    assert ws.json("revert", first, "--yes", "--alone")["runs"][0]["voided"] == ["2025-01-001"]


def test_why_tells_of_the_entry_that_has_the_number_now(ws: Workspace) -> None:
    """Not of the commit that first gave the number, nor of decisions about what had it."""
    add(ws, "2025-01-15", "Depreciation")
    ws.ok("queue", "correct", "2025-01-001", "--note", "of the van")
    ws.git("revert", "--no-edit", "HEAD", "HEAD~1")
    run = ws.script(RENT, name="accrue")["run_id"]
    found = ws.json("why", "2025-01-001")
    assert found["run"] == run and found["decisions"] == []


def test_why_says_of_a_decision_that_git_took_it_back(posted: Workspace) -> None:
    """It is no part of why the entry is as it is; what somebody decided since is."""
    posted.ok("queue", "approve", TWO)
    by = take_back(posted)
    posted.ok("accept", "HEAD", "--reason", "meant so")
    posted.ok("queue", "correct", TWO, "--account", "5070")
    found = posted.json("why", TWO)["decisions"]
    assert [each["git_revert"] for each in found] == [f"taken back already {by}", None]
    told = posted.ok("why", TWO).out.splitlines()
    assert [f", which was taken back already {by}" in line for line in told if line.startswith("then")] == [True, False]


def test_a_version_is_not_held_to_what_git_took_back(ws: Workspace) -> None:
    """The entries that a roll-back lists are those that stand, not those of their numbers."""
    ws.script(RENT, name="accrue")
    take_back(ws)
    add(ws, "2025-01-15", "Depreciation")
    done = ws.ok("agent", "rollback", "accrue", "--reason", "wrong")
    assert "2025-01-001" not in done.out + done.err


def test_a_revert_that_collides_is_named_with_the_way_to_take_it_back(posted: Workspace) -> None:
    """The commit that began the files of a month: what was written since keeps git from taking it out."""
    run, made = posted.json("run", "list")[0]["run_id"], posted.head()
    posted.ok("queue", "approve", TWO)
    posted.git("revert", "--no-edit", made, check=False)
    found = posted("check", "--json").json["violations"]
    assert {each["place"] for each in found} >= {"books/2025/01/journal.csv", "logs/agent-log-2025-02.csv"}
    for each in found:
        assert "after the commit that is reverted" in each["message"] and "clones" not in each["message"], each
        assert "git revert --abort" in each["remedy"] and "sync" not in each["remedy"], each
    said = ("in the middle of a revert: something has written here after", "git revert --abort", "cleared revert RUN")
    refused(posted("queue", "approve", FOUR), 4, *said)
    assert all(words in str(posted.json("status")["trouble"]) for words in said)
    posted.git("revert", "--abort")
    posted.ok("revert", run, "--yes")
    posted.in_order()


def test_a_revert_that_collides_is_named_though_the_files_are_as_committed(posted: Workspace) -> None:
    """Fault: check and status said that all is in order, and runs refused."""
    path = "books/2025/01/journal.csv"
    posted.ok("queue", "approve", TWO)
    posted.git("revert", "--no-edit", "HEAD^", check=False)
    for each in posted.git("diff", "--name-only", "HEAD").split():
        posted.put(each, posted.git("show", f"HEAD:{each}"))
    found = {each["place"]: each["remedy"] for each in posted("check", "--json").json["violations"]}
    assert path in found and "git revert --abort" in found[path], found
    assert f"nothing is run: {path}: the repository is in the middle of a revert" in str(posted.json("status"))
    posted.git("add", "-A")  # nothing collides any more, and git still waits
    [violation] = posted("check", "--json").json["violations"]
    assert "in the middle of a revert" in violation["message"] and "git revert --skip" in violation["remedy"]
    assert "in the middle of a revert" in str(posted.json("status")["trouble"])
    posted.git("revert", "--abort")
    posted.in_order()
    assert "revert" not in str(posted.json("status")["trouble"])


def test_status_names_what_nobody_answered_for(posted: Workspace) -> None:
    """Fault: after git took back an import with what attests it, and after it put both back, check named the commits,
    and status did not."""

    def named() -> list[str]:
        return [line for line in posted.json("status")["trouble"] if "without a run or a decision" in line]

    posted.ok("queue", "approve", TWO)
    assert not named()
    reverts = [posted.git("revert", "--no-edit", "HEAD") and posted.head()]
    add(posted, "2025-01-15", "Depreciation")
    for _ in range(2):
        [line] = named()
        assert f"commit {reverts[0][:10]} (" in line and line.endswith(": cleared check")
        (posted.root / ".cleared/books/by-hand").unlink(missing_ok=True)
    posted.ok("accept", reverts[0], "--reason", "meant so")
    assert not named()
    answer = posted.head()
    reverts += [posted.git("revert", "--no-edit", commit) and posted.head() for commit in (answer, "HEAD")]
    for commit in reversed(reverts[1:]):
        assert commit[:10] in named()[0]
        posted.ok("accept", commit, "--reason", "meant so")
    assert not named()
    posted.in_order()
