"""Names and paths from outside lead nowhere else."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleared.base.errors import ClearedError, PolicyError, UsageError
from cleared.base.safe_names import require_safe_name, resolve_inside


@pytest.mark.parametrize("name", ["ingest", "monthly_summary", "Überweisung 2025-01.csv", "a.b.c", "x" * 120, "con2"])
def test_plain_names_are_themselves(name: str) -> None:
    assert require_safe_name(name, "agent") == name


@pytest.mark.parametrize(
    "name",
    [
        *("", " ", ".", "..", "../x", "/etc/passwd", "a/b", "a\\b", ".hidden", "a\0b", "a\nb", "x" * 121, "é" * 61),
        *(
            "CON",
            "nul.csv",
            "com1",
            "LPT9.txt",
            "a.",
            "a ",
            " a",
            "~a",
            "C:a",
            "invoice\u202efdp.csv",
            "a\ud800",
            "a\u2028b",
        ),
    ],
)
def test_names_that_lead_elsewhere_are_refused_with_a_remedy(name: str) -> None:
    with pytest.raises(UsageError) as caught:
        require_safe_name(name, "agent")
    assert "not a name for an agent" in str(caught.value)
    assert caught.value.remedy


@given(st.text())
def test_a_safe_name_is_one_component_below_its_folder(tmp_path_factory: pytest.TempPathFactory, name: str) -> None:
    root = tmp_path_factory.getbasetemp()
    try:
        require_safe_name(name, "file")
    except UsageError:
        return
    assert resolve_inside(root, name).parent == root.resolve()


@given(st.lists(st.sampled_from(["a", "..", ".", "", "link", "b.csv", "~", "C:"])).map("/".join))
def test_a_path_inside_stays_inside(tmp_path_factory: pytest.TempPathFactory, relative: str) -> None:
    root = tmp_path_factory.getbasetemp().resolve()
    try:
        found = resolve_inside(root, relative)
    except ClearedError:
        return
    assert found == root or root in found.parents


def test_links_are_followed_and_may_not_lead_out(tmp_path: Path) -> None:
    root = tmp_path / "w"
    (root / "import").mkdir(parents=True)
    (tmp_path / "out.csv").write_text("x")
    (root / "import" / "a.csv").symlink_to(tmp_path / "out.csv")
    (root / "import" / "up").symlink_to("../..")
    (root / "import" / "loop").symlink_to("loop")
    (root / "import" / "ok").symlink_to("../config.yaml")
    for bad in ("import/a.csv", "import/up/out.csv", "import/loop"):
        with pytest.raises(PolicyError):
            resolve_inside(root, bad)
    assert resolve_inside(root, "import/ok") == (root / "config.yaml").resolve()
    for bad in ("", "/etc/passwd", "../out.csv", "import/../../x", "a\\..\\b", "~/x", "C:/x", "a\0"):
        with pytest.raises(UsageError):
            resolve_inside(root, bad)
