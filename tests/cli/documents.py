"""What the tests of result documents share: their fields, and what docs/json.md says of them."""
import re


def without_run(document):
    """Everything that may not differ from run to run."""
    return {key: value for key, value in document.items() if key != "run"}


def paths(value, prefix=""):
    """Every field of a document as docs/json.md writes it."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from paths(inner, f"{prefix}.{key}" if prefix else key)
    elif isinstance(value, list):
        if not value:
            yield prefix + "[]"
        for inner in value:
            yield from paths(inner, prefix + "[]")
    else:
        yield prefix


def documented(source, command):
    """The fields of a command's document in docs/json.md."""
    text = (source / "docs" / "json.md").read_text()
    section = text.split(f"## `{command}`")[1].split("\n## ")[0]
    return set(re.findall(r"^\| `([^`]+)` \|", section, re.MULTILINE))


def differences(source, command, document):
    """(described and missing, there and not described); `name.*` describes all inside."""
    known = documented(source, command)
    inside = tuple(name[:-1] for name in known if name.endswith("*"))
    named = {name for name in known if not name.endswith("*")}
    found = set(paths(document))
    return named - found, {p for p in found if not p.startswith(inside)} - named
