"""Groups of commands whose help is shown whole, and a top level that loads only the command that is used."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import typer
from typer.core import TyperArgument, TyperGroup


def new_group(*, bare: bool = False) -> typer.Typer:
    """A group of commands; what it is for stands in ``commands.SECTIONS``.

    Without a command it prints its help; if ``bare`` is set, its callback runs instead.
    """
    return typer.Typer(cls=CommandGroup, no_args_is_help=not bare, invoke_without_command=bare, rich_markup_mode=None)


def first_sentence(text: str) -> str:
    """The first sentence of a docstring, without its full stop."""
    paragraph = " ".join(text.strip().split("\n\n")[0].split())
    return paragraph.split(". ")[0].removesuffix(".")


class CommandGroup(TyperGroup):
    """A group that lists its commands with their whole first sentence, and knows the names they had."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list of commands."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, about) for name, about in self.summaries(ctx).items()])

    def summaries(self, ctx: Any) -> dict[str, str]:
        """Command → what it does, in one sentence."""
        commands = ((name, self.get_command(ctx, name)) for name in self.list_commands(ctx))
        return {name: first_sentence(c.help or "") for name, c in commands if c is not None and not c.hidden}

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """Commands and options that begin so."""
        if incomplete.startswith("-"):
            return list(super().shell_complete(ctx, incomplete))
        return self.complete_names(ctx, incomplete)

    def complete_names(self, ctx: Any, incomplete: str) -> list[Any]:
        """Commands that begin so."""
        return completion_items(ctx, (name for name in self.list_commands(ctx) if name.startswith(incomplete)))


class DefaultingGroup(CommandGroup):
    """A group whose first command (of those that are declared) is meant where none is named."""

    default = ""
    """That command's name; set by a subclass."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list of commands, and which of them needs no naming."""
        super().format_commands(ctx, formatter)
        command = self.get_command(ctx, self.default)
        parameters = [p for p in command.params if p.param_type_name == "argument"] if command is not None else []
        arguments = [getattr(p, "metavar", None) or str(p.name).upper() for p in parameters]
        formatter.write_paragraph()
        formatter.write_text(
            f"The word {self.default} may be left out: "
            f"{' '.join([ctx.command_path, '[OPTIONS]', *arguments])}. Its options: "
            f"{ctx.command_path} {self.default} --help"
        )

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """The arguments, a command first: the one that is named, behind options or not, else the default one."""
        if args[:1] not in (["--help"], ["-h"]):
            at = self._find_first_word(ctx, args)
            named = args[at] if at < len(args) and args[at] in self.list_commands(ctx) else None
            args = [self.default, *args] if named is None else [named, *args[:at], *args[at + 1 :]]
        return list(super().parse_args(ctx, args))

    def _find_first_word(self, ctx: Any, args: list[str]) -> int:
        """The place of the first argument that is no option, nor the value of one."""
        known = super().get_command(ctx, self.default)
        valued = {flag for p in (known.params if known else ()) for flag in p.opts if not getattr(p, "is_flag", True)}
        at = 0
        while at < len(args) and args[at].startswith("-"):
            at += 2 if args[at] in valued else 1
        return at

    def complete_names(self, ctx: Any, incomplete: str) -> list[Any]:
        """Commands that begin so, and files."""
        return [*super().complete_names(ctx, incomplete), *completion_items(ctx, [incomplete], kind="file")]


def completion_items(ctx: Any, values: Iterable[str], kind: str = "plain") -> list[Any]:
    """What a shell is given; ``kind``: ``file`` has it list files. Without help texts: to prepare those takes longer
    than all the rest."""
    # The class of an item is click's, or of a copy of click inside typer: an argument makes one of its own.
    argument = TyperArgument(param_decls=["word"], shell_complete=lambda context, parameter, incomplete: [""])
    make_item = type(argument.shell_complete(ctx, "")[0])
    return [make_item(value, kind) for value in values]
