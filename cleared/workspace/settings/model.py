"""The configuration as values. ``load`` makes these from ``config.yaml``; nothing here reads a file.

The keys and their meaning are part of the interface: the reference page is generated from this module.
"""

# Without annotations from __future__: each would be a text, to be compiled by every command that reads its settings.

from collections.abc import Mapping
from dataclasses import field
from datetime import date
from decimal import Decimal
from typing import Any, Literal

from cleared.workspace.settings.ai_cycle_section import LoopAi, Tasks
from cleared.workspace.settings.bank_section import BankAccount, CsvProfile
from cleared.workspace.settings.section import Section, config_section, harmless, program, protected, reserved, secret
from cleared.workspace.settings.sync_section import Sync


@config_section
class Business(Section):
    name: str = protected(default="My business")
    entity_type: Literal["llc_single_member", "s_corp", "sole_proprietor", "generic"] = protected(default="generic")
    """Written by ``cleared init``, which chose the chart of accounts by it; the list of 1099 forms depends on it."""
    currency: str = protected(default="USD")
    """Base currency, ISO 4217. All debits, credits and balances are in it."""
    timezone: str = protected(default="UTC")
    """IANA zone; governs schedules and ``ctx_today``. Stored times are always UTC."""
    thousands: Literal["auto", "none", "comma", "space", "apostrophe"] = harmless(default="auto")
    """What stands between thousands on the page; ``auto``: as where the base currency is at home. Forms take amounts
    with a comma and without."""
    tax_year_end: str = reserved(default="12-31")
    """MM-DD."""


@config_section
class Fiscal(Section):
    start_month: int = protected(default=1)
    """First month of the fiscal year, 1 to 12; reports call a fiscal year by the year in which it ends."""


@config_section
class Paths(Section):
    books: str = protected(default="books")
    """Directory of the journal (``<books>/YYYY/MM/journal.csv``); ``.`` opens the published layout."""


@config_section
class Import(Section):
    keep: Literal["git", "local"] = protected(default="git")
    """Whether the content of processed files is committed."""
    max_bytes: int = protected(default=64 * 1024 * 1024)
    max_rows: int = protected(default=200_000)
    settle_seconds: float = protected(default=2.0)
    """For triggers: how long a file must have been still."""
    profiles: Mapping[str, CsvProfile] = protected(default_factory=dict)
    plugins: tuple[str, ...] = program(default=())
    """Importer plug-in packages (entry points) that may be loaded, by entry-point name."""


@config_section
class Receipts(Section):
    """Receipts, and how they are kept (``cleared receipt``)."""

    keep: Literal["git", "local"] = protected(default="git")
    """``git``: their content is committed, so that every clone has it. ``local``: it stays in ``receipts/`` here."""
    max_bytes: int = protected(default=10 * 1024 * 1024)
    """A larger file is refused."""


@config_section
class Thresholds(Section):
    auto_confirm: float = protected(default=0.95)
    high_confidence: float = reserved(default=0.90)
    review: float = reserved(default=0.70)
    anomaly_stddev: float = reserved(default=2.0)
    two_person: Decimal | None = protected(default=None)
    """From this amount on (base currency), two different reviewers must have agreed to what is decided of an entry."""


@config_section
class Reviewer(Section):
    """Somebody who may decide."""

    name: str = protected()
    key: str = protected()
    """Public key, as ``cleared queue reviewers`` shows it to them."""


@config_section
class Review(Section):
    remind_after: str = harmless(default="3d")
    """How long a card waits before one is reminded of it: 12h, 3d, 2w. None ever expires for it."""


@config_section
class Limits(Section):
    """Bounds beyond which a value is taken for a mistake."""

    max_amount: Decimal = protected(default=Decimal("1000000000000"))
    min_date: date = protected(default=date(1970, 1, 1))
    max_date: date = protected(default=date(2199, 12, 31))
    max_text_bytes: int = protected(default=10_240)


@config_section
class Sandbox(Section):
    transport: Literal["direct", "bridge"] = protected(default="direct")
    timeout: float = protected(default=30.0)
    """Wall-clock seconds for a whole run, host time included. An agent that reads bank files has one more for each
    50 kB of those that wait, up to ``timeout_cap``; one that has ``timeout:`` in its header has just that."""
    memory_mb: int = protected(default=512)
    max_calls: int = protected(default=1_000_000)
    timeout_cap: float = protected(default=3600.0)
    """The most that ``timeout:`` in a script's header may ask for. As shipped it binds what is proposed; set to another
    value, it holds for versions approved before, too."""
    memory_mb_cap: int = protected(default=2048)
    """The same for ``memory_mb:``."""
    max_calls_cap: int = protected(default=10_000_000)
    """The same for ``max_calls:``."""
    max_output_kb: int = protected(default=1024)
    confine: Literal["best", "require", "off"] = protected(default="best")
    """How scripts, jobs, verification commands, engines and the reader of PDF files are held: as well as the machine
    can; not started where a wall is missing (``cleared doctor`` names them); or not at all, but for engines."""


@config_section
class Gate(Section):
    """What a script must pass before a person is asked about it."""

    history_runs: int = protected(default=50)
    """How many past runs of an agent a change is rehearsed over."""
    behaviour: Literal["warn", "block"] = protected(default="warn")
    """What becomes of "it confirms everything now" and "the review queue would double"."""
    rules: Mapping[str, str] = protected(default_factory=dict)
    """Rule id → ``block``, ``warn`` or ``off``, where it is not to be as shipped."""


@config_section
class Git(Section):
    author_name: str = protected(default="cleared")
    author_email: str = protected(default="cleared@localhost")
    auto_commit: bool = protected(default=True)
    """Commit what a script staged without calling ``git_commit``."""


@config_section
class Lock(Section):
    wait_seconds: float = harmless(default=60.0)


@config_section
class Agent(Section):
    """The published design's keys. Headers of agents say this instead."""

    schedule: str | None = reserved(default=None)
    watch_dir: str = reserved(default="import/")
    auto_commit: bool | None = reserved(default=None)


@config_section
class ModelPrice(Section):
    """US dollars for a million tokens of one model."""

    input: Decimal = protected()
    output: Decimal = protected()
    cached_input: Decimal | None = protected(default=None)
    """For tokens that the provider had in its cache. None: as ``input``."""


@config_section
class Llm(Section):
    """The language model that ``cleared chat``, ``cleared meta`` and scripts with a grant for it ask.

    Its key is no setting: it comes from the environment or the system's keyring (``cleared llm key``)."""

    provider: Literal["anthropic", "openai", "openrouter"] | None = program(default=None)
    """None: no model is asked. ``openai`` with a ``base_url``: any server that speaks its protocol, such as Ollama."""
    model: str | None = protected(default=None)
    """As the provider names it, such as claude-sonnet-5 or openai/gpt-4.1."""
    base_url: str | None = program(default=None)
    """Where its server is, such as http://127.0.0.1:11434/v1. None: the provider's own."""
    api_key_env: str | None = program(default=None)
    """The environment variable that holds the key. None: ANTHROPIC_API_KEY, OPENAI_API_KEY or OPENROUTER_API_KEY; with
    a ``base_url``, no variable is read unless it is named here."""
    daily_budget: Decimal = protected(default=Decimal(5))
    """US dollars for all calls of one day in ``business.timezone``."""
    session_budget: Decimal = protected(default=Decimal(1))
    """US dollars for one session."""
    prices: Mapping[str, ModelPrice] = protected(default_factory=dict)
    """Model → what it costs, where that is not known. A model without a price is not asked; 0 says that it is free."""
    max_tokens: int = protected(default=16_384)
    """The longest answer of one call, in tokens."""
    timeout: int = protected(default=180)
    """Seconds for which the model may say nothing before or within an answer. The whole answer has that and a second
    for each token of ``max_tokens``, so that a slow model on the own machine comes to its end."""
    retries: int = protected(default=4)
    """How often a call that failed in passing (busy, no connection, silent) is sent again."""
    max_iterations: int = protected(default=200)
    """The most calls for one request of a session."""
    auto_compact_threshold: float = protected(default=0.6)
    """From which share of the context window on old parts of a session are left out or summed up."""
    prune_protect: int = protected(default=40_000)
    """The newest tokens of a session stay as they are when older tool output is left out; half of what there is room
    for, where the window is too small for so many."""
    max_images: int = protected(default=10)
    """The most images a call carries; older ones are left out."""
    cache_enabled: bool = protected(default=True)
    """Mark for the provider what it should keep in its cache, which makes a session cheaper."""
    context_window: int | None = protected(default=None)
    """Tokens that the model can read at once. None: as known of the model, else 128,000."""
    shell: bool = program(default=False)
    """Offer a session the tools that run programs, confined, beside a copy of the workspace."""
    search_command: tuple[str, ...] = program(default=())
    """Program and arguments that search the web: gets the query as JSON on its standard input, prints text."""
    transcript_command: tuple[str, ...] = program(default=())
    """The same for the transcript of a recording."""


@config_section
class Mcp(Section):
    """What clients may do through ``cleared mcp``. They may always read, check and propose, and never decide."""

    allow_run: bool = program(default=False)
    """Let them run approved agents."""


@config_section
class AutoRevert(Section):
    """When a change of an agent is taken back by itself. 0: that is not looked at."""

    review_queue_spike: float = protected(default=2.0)
    """How many times as many cards for each record as before."""
    invariant_violations: int = protected(default=1)
    """Invariants that runs since would have broken."""
    error_rate_increase: float = protected(default=0.5)
    """By how much the share of events that fail has risen: 0.5 is by half."""


@config_section
class SelfImprovement(Section):
    enabled: bool = protected(default=False)
    """Let the service propose once a night what follows from decisions, as ``cleared improve`` does."""
    approve: Literal["none", "additive"] = protected(default="none")
    """What becomes live without a person. ``additive``: a row that would only have booked, without asking, what persons
    decided so; only where your own key has approved this setting."""
    max_changes_per_night: int = protected(default=20)
    """Proposals not made by a human, in one day, over all agents."""
    max_changes_per_agent: int = protected(default=5)
    """The same, of one agent."""
    cooldown_hours: int = protected(default=24)
    """How long an agent is left alone after a change of it was approved."""
    auto_revert_on: AutoRevert = field(default_factory=AutoRevert)


@config_section
class Triggers(Section):
    """What starts runs by itself, while ``cleared up`` runs. Headers of agents take precedence.

    ``cleared up`` runs agents when their triggers fire; ``cleared loop`` runs jobs, one at a time, in the order they
    are asked for."""

    polling: bool = protected(default=False)
    """Look at watched folders every second instead of having the system tell: for network drives."""
    scan_seconds: float = protected(default=60.0)
    """How often watched folders are searched besides, in case the system did not report a change."""
    catch_up: Literal["none", "latest", "all"] = protected(default="latest")
    """Which of the times a schedule missed, while the service was down or the machine slept, are made up for."""
    retries: int = protected(default=2)
    """How often a run that failed is tried again before its event is given up, its files set aside."""
    retry_seconds: float = protected(default=10.0)
    """Before the first of them; doubled before each next one, up to an hour."""
    max_depth: int = protected(default=8)
    """How many events deep a chain of runs may go that start one another."""
    max_event_runs: int = protected(default=600)
    """How many runs of one agent events may start in an hour; more wait."""


@config_section
class Webhooks(Section):
    """Calls of other programs that start agents, through ``cleared server``."""

    rate: int = protected(default=600)
    """How many calls of one secret are taken in a minute; more are answered 429."""


@config_section
class Notifications(Section):
    """What ``cleared up`` tells you of, and how."""

    method: Literal["none", "smtp", "email", "exec"] | None = program(default="none")
    """``smtp``: by mail. ``email``: the same; what has no ``smtp_host`` yet waits. ``exec``: by a command of yours."""
    address: str | None = program(default=None)
    """Who gets the mail."""
    sender: str | None = protected(default=None)
    """None: ``address``."""
    smtp_host: str | None = program(default=None)
    smtp_port: int | None = protected(default=None)
    """None: 587 for ``starttls``, 465 for ``tls``, 25 for ``none``."""
    smtp_security: Literal["starttls", "tls", "none"] = protected(default="starttls")
    """``none`` is for a server on this machine: it takes no password to any other."""
    smtp_user: str | None = program(default=None)
    """None: the server asks for no password."""
    smtp_password: str | None = secret(default=None)
    """A secret: no script can read it. Stays out of git, and needs no approval."""
    command: tuple[str, ...] = program(default=())
    """Program and arguments for ``exec``. Gets the message as JSON on its standard input."""
    daily_digest_time: str | None = protected(default="08:00")
    """HH:MM in ``business.timezone``; nothing is sent where nothing waits. None: no digest."""
    on_failure: bool = protected(default=True)
    """Tell of failed runs at once, several within 15 minutes in one message."""
    push: bool = program(default=False)
    """Tell phones that have asked for it on the page, at ``daily_digest_time``, how many cards wait: once a day at
    most, whatever ``method`` is."""
    push_hosts: tuple[str, ...] = program(default=())
    """Push services (HOST or HOST:PORT) beside those of Chromium, Firefox, Safari and Edge."""


@config_section
class Loop(Section):
    """``cleared up`` runs agents when their triggers fire; ``cleared loop`` runs jobs, one at a time, in the order they
    are asked for. Environment variables and flags take precedence."""

    runtime_dir: str = protected(default=".cleared/loop")
    """Where its files are: a folder in the workspace that git has no files in. SINGLE_AGENT_RUNTIME_DIR, --runtime-dir:
    any folder."""
    sleep_seconds: float = protected(default=30.0)
    """Between two cycles when no job waits. SINGLE_AGENT_SLEEP_SECONDS, --sleep."""
    max_cycles: int | None = protected(default=None)
    """After how many cycles it ends; None: it goes on. SINGLE_AGENT_MAX_CYCLES, --max-cycles."""
    init_on_start: bool = protected(default=False)
    """Begin with a fresh state; the old one is archived. SINGLE_AGENT_INIT_ON_START, --init."""
    auto_rotate: bool = protected(default=False)
    """Enqueue the next job of ``rotation`` when none waits. --auto-rotate."""
    rotation: tuple[str, ...] = protected(default=("continuity_scan", "akela_meta_summary", "git_status_summary"))
    """Kinds that rotate, in this order."""
    tmux_session: str | None = protected(default=None)
    """Name of the tmux session that ``loop start`` uses; None: none. SINGLE_AGENT_TMUX_SESSION, --session."""
    log_dir: str | None = protected(default=None)
    """As ``runtime_dir``; None: ``logs`` in it. SINGLE_AGENT_LOG_DIR, --log-dir: any folder."""
    allow_ai_turn: bool = program(default=False)
    """Let ai_single_turn_bridge do anything at all. SINGLE_AGENT_ALLOW_AI_TURN, --allow-ai-turn."""
    ai_dry_run: bool = protected(default=False)
    """Have ai_single_turn_bridge write what it would ask, and ask nobody. SINGLE_AGENT_AI_DRY_RUN, --ai-dry-run."""
    max_failures: int = protected(default=3)
    """How often in a row a job type may fail before the loop stops."""
    keep_jobs: int = protected(default=200)
    """The files of so many of the newest jobs are kept."""
    continuity: tuple[str, ...] = protected(default=("continuity", "docs", "README.md"))
    """Files and folders that continuity_scan reads, where there are such."""
    akela_report: str = protected(default="reports/akela_meta.json")
    """The report that akela_meta_summary reads."""
    forbidden_paths: tuple[str, ...] = protected(default=())
    """Patterns of names (``*.sqlite``) and of paths (``private/*``) that no job reads, beside those built in."""
    plugins: tuple[str, ...] = program(default=())
    """Plug-in job types (entry points) that may be loaded, by name."""
    ai: LoopAi = field(default_factory=LoopAi)


@config_section
class Domains(Section):
    plugins: tuple[str, ...] = program(default=())
    """Plug-in domains (entry points) that may be loaded, by name: they say what else agents work on."""


@config_section
class Config(Section):
    """All of ``config.yaml``. ``data`` is the same, as plain values, for ``config_get``."""

    business: Business = field(default_factory=Business)
    fiscal: Fiscal = field(default_factory=Fiscal)
    paths: Paths = field(default_factory=Paths)
    bank_accounts: tuple[BankAccount, ...] = protected(default=())
    import_: Import = field(default_factory=Import)
    receipts: Receipts = field(default_factory=Receipts)
    thresholds: Thresholds = field(default_factory=Thresholds)
    reviewers: tuple[Reviewer, ...] = protected(default=())
    """Who may decide; as long as nobody is named, whoever sits at the keyboard."""
    bookkeepers: tuple[str, ...] = protected(default=())
    """The names of those reviewers who decide about cards and entries, and approve nothing: no agent, no setting."""
    review: Review = field(default_factory=Review)
    limits: Limits = field(default_factory=Limits)
    sandbox: Sandbox = field(default_factory=Sandbox)
    gate: Gate = field(default_factory=Gate)
    git: Git = field(default_factory=Git)
    lock: Lock = field(default_factory=Lock)
    agent: Agent = field(default_factory=Agent)
    llm: Llm = field(default_factory=Llm)
    mcp: Mcp = field(default_factory=Mcp)
    tasks: Tasks = field(default_factory=Tasks)
    sync: Sync = field(default_factory=Sync)
    self_improvement: SelfImprovement = field(default_factory=SelfImprovement)
    triggers: Triggers = field(default_factory=Triggers)
    webhooks: Webhooks = field(default_factory=Webhooks)
    notifications: Notifications = field(default_factory=Notifications)
    loop: Loop = field(default_factory=Loop)
    domains: Domains = field(default_factory=Domains)
    data: Mapping[str, Any] = field(default_factory=dict)
