"""Blocks are found where they stand, commands go on where lines say so, and an ellipsis stands for anything."""

from tests.docs.blocks import agrees, read_blocks, read_commands

PAGE = """# Title

```console
$ cat > names <<END
> a
> END
$ leafledger explain \\
    model
one
two
$ echo $?
```

```{code-block} json
:caption: groups.json

{}
```
"""


def test_blocks_and_commands_say_where_they_stand(tmp_path):
    """Positions are those of the page, so that what is printed can be written there."""
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    console, file = read_blocks(page)
    assert (console.language, console.line, PAGE[console.after :][:2]) == ("console", 4, "\n\n")
    assert file.file == ("groups.json", "{}\n")
    commands = list(read_commands(console))
    assert [command.typed for command in commands] == ["cat > names <<END\na\nEND", "leafledger explain \\\n    model", "echo $?"]
    assert [command.line for command in commands] == [4, 7, 11]
    assert [PAGE[command.start : command.end] for command in commands] == ["", "one\ntwo\n", ""]


def test_an_ellipsis_stands_for_anything_and_nothing_else_does():
    """Blanks at ends of lines do not count; whole texts are compared."""
    assert agrees("a … c\n…\n", "a b  c \nd\ne\n")
    assert agrees("", "\n")
    assert not agrees("a", "a\nb")
    assert not agrees("a.c", "abc")
