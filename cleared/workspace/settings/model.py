"""The configuration as values. ``load`` makes these from ``config.yaml``; nothing here reads a file.

The keys and their meaning are part of the interface: the reference page is generated from this module.
"""

# Without annotations from __future__: each would be a text, to be compiled by every command that reads its settings.

from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from typing import Any, Literal

from msgspec import field

from cleared.workspace.settings.ai_cycle_section import LoopAi, Tasks
from cleared.workspace.settings.bank_section import BankAccount, CsvProfile
from cleared.workspace.settings.section import Harmless, Program, Protected, Reserved, Secret, Section
from cleared.workspace.settings.sync_section import Sync


class Business(Section, frozen=True, kw_only=True):
    name: Protected[str] = "My business"
    entity_type: Protected[Literal["llc_single_member", "s_corp", "sole_proprietor", "generic"]] = "generic"
    """Written by ``cleared init``, which chose the chart of accounts by it; the list of 1099 forms depends on it."""
    currency: Protected[str] = "USD"
    """Base currency, ISO 4217. All debits, credits and balances are in it."""
    timezone: Protected[str] = "UTC"
    """IANA zone; governs schedules and ``ctx_today``. Stored times are always UTC."""
    thousands: Harmless[Literal["auto", "none", "comma", "space", "apostrophe"]] = "auto"
    """What stands between thousands on the page; ``auto``: as where the base currency is at home. Forms take amounts
    with a comma and without."""
    tax_year_end: Reserved[str] = "12-31"
    """MM-DD."""


class Fiscal(Section, frozen=True, kw_only=True):
    start_month: Protected[int] = 1
    """First month of the fiscal year, 1 to 12; reports call a fiscal year by the year in which it ends."""


class Paths(Section, frozen=True, kw_only=True):
    books: Protected[str] = "books"
    """Directory of the journal (``<books>/YYYY/MM/journal.csv``); ``.`` opens the published layout."""


class Import(Section, frozen=True, kw_only=True):
    keep: Protected[Literal["git", "local"]] = "git"
    """Whether the content of processed files is committed."""
    max_bytes: Protected[int] = 64 * 1024 * 1024
    max_rows: Protected[int] = 200_000
    settle_seconds: Protected[float] = 2.0
    """For triggers: how long a file must have been still."""
    profiles: Protected[Mapping[str, CsvProfile]] = field(default_factory=dict)
    plugins: Program[tuple[str, ...]] = ()
    """Importer plug-in packages (entry points) that may be loaded, by entry-point name."""


class Receipts(Section, frozen=True, kw_only=True):
    """Receipts, and how they are kept (``cleared receipt``)."""

    keep: Protected[Literal["git", "local"]] = "git"
    """``git``: their content is committed, so that every clone has it. ``local``: it stays in ``receipts/`` here."""
    max_bytes: Protected[int] = 10 * 1024 * 1024
    """A larger file is refused."""


class Thresholds(Section, frozen=True, kw_only=True):
    auto_confirm: Protected[float] = 0.95
    high_confidence: Reserved[float] = 0.90
    review: Reserved[float] = 0.70
    anomaly_stddev: Reserved[float] = 2.0
    two_person: Protected[Decimal | None] = None
    """From this amount on (base currency), two different reviewers must have agreed to what is decided of an entry."""


class Reviewer(Section, frozen=True, kw_only=True):
    """Somebody who may decide."""

    name: Protected[str]
    key: Protected[str]
    """Public key, as ``cleared queue reviewers`` shows it to them."""


class Review(Section, frozen=True, kw_only=True):
    remind_after: Harmless[str] = "3d"
    """How long a card waits before one is reminded of it: 12h, 3d, 2w. None ever expires for it."""


class Limits(Section, frozen=True, kw_only=True):
    """Bounds beyond which a value is taken for a mistake."""

    max_amount: Protected[Decimal] = Decimal("1000000000000")
    min_date: Protected[date] = date(1970, 1, 1)
    max_date: Protected[date] = date(2199, 12, 31)
    max_text_bytes: Protected[int] = 10_240


class Sandbox(Section, frozen=True, kw_only=True):
    transport: Protected[Literal["direct", "bridge"]] = "direct"
    timeout: Protected[float] = 30.0
    """Wall-clock seconds for a whole run, host time included. An agent that reads bank files has one more for each
    50 kB of those that wait, up to ``timeout_cap``; one that has ``timeout:`` in its header has just that."""
    memory_mb: Protected[int] = 512
    max_calls: Protected[int] = 1_000_000
    timeout_cap: Protected[float] = 3600.0
    """The most that ``timeout:`` in a script's header may ask for. As shipped it binds what is proposed; set to another
    value, it holds for versions approved before, too."""
    memory_mb_cap: Protected[int] = 2048
    """The same for ``memory_mb:``."""
    max_calls_cap: Protected[int] = 10_000_000
    """The same for ``max_calls:``."""
    max_output_kb: Protected[int] = 1024
    confine: Protected[Literal["best", "require", "off"]] = "best"
    """How scripts, jobs, verification commands, engines and the reader of PDF files are held: as well as the machine
    can; not started where a wall is missing (``cleared doctor`` names them); or not at all, but for engines."""


class Gate(Section, frozen=True, kw_only=True):
    """What a script must pass before a person is asked about it."""

    history_runs: Protected[int] = 50
    """How many past runs of an agent a change is rehearsed over."""
    behaviour: Protected[Literal["warn", "block"]] = "warn"
    """What becomes of "it confirms everything now" and "the review queue would double"."""
    rules: Protected[Mapping[str, str]] = field(default_factory=dict)
    """Rule id → ``block``, ``warn`` or ``off``, where it is not to be as shipped."""


class Git(Section, frozen=True, kw_only=True):
    author_name: Protected[str] = "cleared"
    author_email: Protected[str] = "cleared@localhost"
    auto_commit: Protected[bool] = True
    """Commit what a script staged without calling ``git_commit``."""


class Lock(Section, frozen=True, kw_only=True):
    wait_seconds: Harmless[float] = 60.0


class Agent(Section, frozen=True, kw_only=True):
    """The published design's keys. Headers of agents say this instead."""

    schedule: Reserved[str | None] = None
    watch_dir: Reserved[str] = "import/"
    auto_commit: Reserved[bool | None] = None


class ModelPrice(Section, frozen=True, kw_only=True):
    """US dollars for a million tokens of one model."""

    input: Protected[Decimal]
    output: Protected[Decimal]
    cached_input: Protected[Decimal | None] = None
    """For tokens that the provider had in its cache. None: as ``input``."""


class Llm(Section, frozen=True, kw_only=True):
    """The language model that ``cleared chat``, ``cleared meta`` and scripts with a grant for it ask.

    Its key is no setting: it comes from the environment or the system's keyring (``cleared llm key``)."""

    provider: Program[Literal["anthropic", "openai", "openrouter"] | None] = None
    """None: no model is asked. ``openai`` with a ``base_url``: any server that speaks its protocol, such as Ollama."""
    model: Protected[str | None] = None
    """As the provider names it, such as claude-sonnet-5 or openai/gpt-4.1."""
    base_url: Program[str | None] = None
    """Where its server is, such as http://127.0.0.1:11434/v1. None: the provider's own."""
    api_key_env: Program[str | None] = None
    """The environment variable that holds the key. None: ANTHROPIC_API_KEY, OPENAI_API_KEY or OPENROUTER_API_KEY; with
    a ``base_url``, no variable is read unless it is named here."""
    daily_budget: Protected[Decimal] = Decimal(5)
    """US dollars for all calls of one day in ``business.timezone``."""
    session_budget: Protected[Decimal] = Decimal(1)
    """US dollars for one session."""
    prices: Protected[Mapping[str, ModelPrice]] = field(default_factory=dict)
    """Model → what it costs, where that is not known. A model without a price is not asked; 0 says that it is free."""
    max_tokens: Protected[int] = 16_384
    """The longest answer of one call, in tokens."""
    timeout: Protected[int] = 180
    """Seconds for which the model may say nothing before or within an answer. The whole answer has that and a second
    for each token of ``max_tokens``, so that a slow model on the own machine comes to its end."""
    retries: Protected[int] = 4
    """How often a call that failed in passing (busy, no connection, silent) is sent again."""
    max_iterations: Protected[int] = 200
    """The most calls for one request of a session."""
    auto_compact_threshold: Protected[float] = 0.6
    """From which share of the context window on old parts of a session are left out or summed up."""
    prune_protect: Protected[int] = 40_000
    """The newest tokens of a session stay as they are when older tool output is left out; half of what there is room
    for, where the window is too small for so many."""
    max_images: Protected[int] = 10
    """The most images a call carries; older ones are left out."""
    cache_enabled: Protected[bool] = True
    """Mark for the provider what it should keep in its cache, which makes a session cheaper."""
    context_window: Protected[int | None] = None
    """Tokens that the model can read at once. None: as known of the model, else 128,000."""
    shell: Program[bool] = False
    """Offer a session the tools that run programs, confined, beside a copy of the workspace."""
    search_command: Program[tuple[str, ...]] = ()
    """Program and arguments that search the web: gets the query as JSON on its standard input, prints text."""
    transcript_command: Program[tuple[str, ...]] = ()
    """The same for the transcript of a recording."""


class Mcp(Section, frozen=True, kw_only=True):
    """What clients may do through ``cleared mcp``. They may always read, check and propose, and never decide."""

    allow_run: Program[bool] = False
    """Let them run approved agents."""


class AutoRevert(Section, frozen=True, kw_only=True):
    """When a change of an agent is taken back by itself. 0: that is not looked at."""

    review_queue_spike: Protected[float] = 2.0
    """How many times as many cards for each record as before."""
    invariant_violations: Protected[int] = 1
    """Invariants that runs since would have broken."""
    error_rate_increase: Protected[float] = 0.5
    """By how much the share of events that fail has risen: 0.5 is by half."""


class SelfImprovement(Section, frozen=True, kw_only=True):
    enabled: Protected[bool] = False
    """Let the service propose once a night what follows from decisions, as ``cleared improve`` does."""
    approve: Protected[Literal["none", "additive"]] = "none"
    """What becomes live without a person. ``additive``: a row that would only have booked, without asking, what persons
    decided so; only where your own key has approved this setting."""
    max_changes_per_night: Protected[int] = 20
    """Proposals not made by a human, in one day, over all agents."""
    max_changes_per_agent: Protected[int] = 5
    """The same, of one agent."""
    cooldown_hours: Protected[int] = 24
    """How long an agent is left alone after a change of it was approved."""
    auto_revert_on: AutoRevert = AutoRevert()


class Triggers(Section, frozen=True, kw_only=True):
    """What starts runs by itself, while ``cleared up`` runs. Headers of agents take precedence.

    ``cleared up`` runs agents when their triggers fire; ``cleared loop`` runs jobs, one at a time, in the order they
    are asked for."""

    polling: Protected[bool] = False
    """Look at watched folders every second instead of having the system tell: for network drives."""
    scan_seconds: Protected[float] = 60.0
    """How often watched folders are searched besides, in case the system did not report a change."""
    catch_up: Protected[Literal["none", "latest", "all"]] = "latest"
    """Which of the times a schedule missed, while the service was down or the machine slept, are made up for."""
    retries: Protected[int] = 2
    """How often a run that failed is tried again before its event is given up, its files set aside."""
    retry_seconds: Protected[float] = 10.0
    """Before the first of them; doubled before each next one, up to an hour."""
    max_depth: Protected[int] = 8
    """How many events deep a chain of runs may go that start one another."""
    max_event_runs: Protected[int] = 600
    """How many runs of one agent events may start in an hour; more wait."""


class Webhooks(Section, frozen=True, kw_only=True):
    """Calls of other programs that start agents, through ``cleared server``."""

    rate: Protected[int] = 600
    """How many calls of one secret are taken in a minute; more are answered 429."""


class Notifications(Section, frozen=True, kw_only=True):
    """What ``cleared up`` tells you of, and how."""

    method: Program[Literal["none", "smtp", "email", "exec"] | None] = "none"
    """``smtp``: by mail. ``email``: the same; what has no ``smtp_host`` yet waits. ``exec``: by a command of yours."""
    address: Program[str | None] = None
    """Who gets the mail."""
    sender: Protected[str | None] = None
    """None: ``address``."""
    smtp_host: Program[str | None] = None
    smtp_port: Protected[int | None] = None
    """None: 587 for ``starttls``, 465 for ``tls``, 25 for ``none``."""
    smtp_security: Protected[Literal["starttls", "tls", "none"]] = "starttls"
    """``none`` is for a server on this machine: it takes no password to any other."""
    smtp_user: Program[str | None] = None
    """None: the server asks for no password."""
    smtp_password: Secret[str | None] = None
    """A secret: no script can read it. Stays out of git, and needs no approval."""
    command: Program[tuple[str, ...]] = ()
    """Program and arguments for ``exec``. Gets the message as JSON on its standard input."""
    daily_digest_time: Protected[str | None] = "08:00"
    """HH:MM in ``business.timezone``; nothing is sent where nothing waits. None: no digest."""
    on_failure: Protected[bool] = True
    """Tell of failed runs at once, several within 15 minutes in one message."""
    push: Program[bool] = False
    """Tell phones that have asked for it on the page, at ``daily_digest_time``, how many cards wait: once a day at
    most, whatever ``method`` is."""
    push_hosts: Program[tuple[str, ...]] = ()
    """Push services (HOST or HOST:PORT) beside those of Chromium, Firefox, Safari and Edge."""


class Loop(Section, frozen=True, kw_only=True):
    """``cleared up`` runs agents when their triggers fire; ``cleared loop`` runs jobs, one at a time, in the order they
    are asked for. Environment variables and flags take precedence."""

    runtime_dir: Protected[str] = ".cleared/loop"
    """Where its files are: a folder in the workspace that git has no files in. SINGLE_AGENT_RUNTIME_DIR, --runtime-dir:
    any folder."""
    sleep_seconds: Protected[float] = 30.0
    """Between two cycles when no job waits. SINGLE_AGENT_SLEEP_SECONDS, --sleep."""
    max_cycles: Protected[int | None] = None
    """After how many cycles it ends; None: it goes on. SINGLE_AGENT_MAX_CYCLES, --max-cycles."""
    init_on_start: Protected[bool] = False
    """Begin with a fresh state; the old one is archived. SINGLE_AGENT_INIT_ON_START, --init."""
    auto_rotate: Protected[bool] = False
    """Enqueue the next job of ``rotation`` when none waits. --auto-rotate."""
    rotation: Protected[tuple[str, ...]] = ("continuity_scan", "akela_meta_summary", "git_status_summary")
    """Kinds that rotate, in this order."""
    tmux_session: Protected[str | None] = None
    """Name of the tmux session that ``loop start`` uses; None: none. SINGLE_AGENT_TMUX_SESSION, --session."""
    log_dir: Protected[str | None] = None
    """As ``runtime_dir``; None: ``logs`` in it. SINGLE_AGENT_LOG_DIR, --log-dir: any folder."""
    allow_ai_turn: Program[bool] = False
    """Let ai_single_turn_bridge do anything at all. SINGLE_AGENT_ALLOW_AI_TURN, --allow-ai-turn."""
    ai_dry_run: Protected[bool] = False
    """Have ai_single_turn_bridge write what it would ask, and ask nobody. SINGLE_AGENT_AI_DRY_RUN, --ai-dry-run."""
    max_failures: Protected[int] = 3
    """How often in a row a job type may fail before the loop stops."""
    keep_jobs: Protected[int] = 200
    """The files of so many of the newest jobs are kept."""
    continuity: Protected[tuple[str, ...]] = ("continuity", "docs", "README.md")
    """Files and folders that continuity_scan reads, where there are such."""
    akela_report: Protected[str] = "reports/akela_meta.json"
    """The report that akela_meta_summary reads."""
    forbidden_paths: Protected[tuple[str, ...]] = ()
    """Patterns of names (``*.sqlite``) and of paths (``private/*``) that no job reads, beside those built in."""
    plugins: Program[tuple[str, ...]] = ()
    """Plug-in job types (entry points) that may be loaded, by name."""
    ai: LoopAi = LoopAi()


class Domains(Section, frozen=True, kw_only=True):
    plugins: Program[tuple[str, ...]] = ()
    """Plug-in domains (entry points) that may be loaded, by name: they say what else agents work on."""


class Config(Section, frozen=True, kw_only=True):
    """All of ``config.yaml``. ``data`` is the same, as plain values, for ``config_get``."""

    business: Business = Business()
    fiscal: Fiscal = Fiscal()
    paths: Paths = Paths()
    bank_accounts: Protected[tuple[BankAccount, ...]] = ()
    import_: Import = Import()
    receipts: Receipts = Receipts()
    thresholds: Thresholds = Thresholds()
    reviewers: Protected[tuple[Reviewer, ...]] = ()
    """Who may decide; as long as nobody is named, whoever sits at the keyboard."""
    bookkeepers: Protected[tuple[str, ...]] = ()
    """The names of those reviewers who decide about cards and entries, and approve nothing: no agent, no setting."""
    review: Review = Review()
    limits: Limits = Limits()
    sandbox: Sandbox = Sandbox()
    gate: Gate = Gate()
    git: Git = Git()
    lock: Lock = Lock()
    agent: Agent = Agent()
    llm: Llm = Llm()
    mcp: Mcp = Mcp()
    tasks: Tasks = Tasks()
    sync: Sync = Sync()
    self_improvement: SelfImprovement = SelfImprovement()
    triggers: Triggers = Triggers()
    webhooks: Webhooks = Webhooks()
    notifications: Notifications = Notifications()
    loop: Loop = Loop()
    domains: Domains = Domains()
    data: Mapping[str, Any] = {}
