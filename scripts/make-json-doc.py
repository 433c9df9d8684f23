#!/usr/bin/env python3
"""Bring the tables of members in docs/json.md up to date with docs/schema/assay.schema.json.

usage: make-json-doc.py docs/json.md            rewrite what stands between the marks
       make-json-doc.py --check docs/json.md    only compare; exit code 1 where they differ

Between `<!-- begin NAME -->` and `<!-- end NAME -->` stands what `$defs` has as NAME: its description
and a row for each member. Each definition with a title has its marks, after a heading of its own,
and a member of that kind has a link to it in place of rows. Those without a title have their rows
wherever they are used.
"""
import json
import pathlib
import re
import sys

SCHEMA = pathlib.Path(__file__).resolve().parent.parent / "docs" / "schema" / "assay.schema.json"
MARKS = re.compile(r"(?<=<!-- begin )([\w-]+)( -->\n).*?(?=<!-- end \1 -->)", re.DOTALL)


def anchors(page):
    """The heading above each definition's marks, as a link's target has it."""
    found, heading = {}, ""
    for line in page.splitlines():
        if line.startswith("#"):
            heading = line.lstrip("# ")
        elif line.startswith("<!-- begin "):
            found[line.split()[2]] = re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")
    return found


def words(items):
    return ", ".join(items[:-1]) + " or " + items[-1] if len(items) > 1 else items[0]


class Tables:
    def __init__(self, defs, targets):
        self.defs, self.targets = defs, targets

    def follow(self, node):
        """(what a reference means, the name of the definition that it is of or in)"""
        name, *rest = node["$ref"].removeprefix("#/$defs/").split("/")
        node = self.defs[name]
        for step in rest:
            node = node[step]
        return node, name

    def link(self, name):
        return f"[{self.defs[name]['title']}](#{self.targets.get(name)})"

    def kind(self, node):
        """What a value is, in words."""
        if "$ref" in node:
            return self.link(self.follow(node)[1])
        for choice in ("anyOf", "oneOf"):
            if choice in node:
                return words([self.kind(inner) for inner in node[choice]])
        values = node.get("enum", [node["const"]] if "const" in node else None)
        if values:
            return words([json.dumps(value) for value in values])
        types = node["type"] if isinstance(node["type"], list) else [node["type"]]
        return words(types)

    def rows(self, node, prefix=""):
        """The members of an object, in the schema's order: (path, kind, description)."""
        for key in node:
            if key == "properties":
                yield from self.own(node, prefix)
            elif key == "allOf":
                for part in node[key]:
                    yield from self.shared(part, prefix)

    def shared(self, part, prefix):
        inner, name = self.follow(part)
        if "title" in inner:
            yield prefix + "*", self.link(name), "Its members."
        else:
            yield from self.rows(inner, prefix)

    def own(self, node, prefix):
        for name, member in node["properties"].items():
            inner, path = member, prefix + name
            while inner.get("type") == "array":
                inner, path = inner["items"], path + "[]"
            free = inner.get("additionalProperties")
            if isinstance(free, dict):
                inner = member = free
                path += ".*"
            optional = "" if name in node.get("required", ()) else "; optional"
            yield path, self.kind(inner) + optional, member["description"]
            yield from self.rows(inner, path + ".")

    def table(self, name):
        node = self.defs[name]
        yield from ("", node["description"], "", "| member | type | what |", "| --- | --- | --- |")
        for path, kind, what in self.rows(node):
            what = what.replace("|", r"\|")
            yield f"| `{path}` | {kind} | {what} |"
        yield from ("", "")


def main():
    arguments = [a for a in sys.argv[1:] if a != "--check"]
    if len(arguments) != 1:
        sys.exit(__doc__)
    path = pathlib.Path(arguments[0])
    page = path.read_text()
    defs = json.loads(SCHEMA.read_text())["$defs"]
    wanted = {name for name, node in defs.items() if "title" in node}
    found = [match[1] for match in MARKS.finditer(page)]
    if set(found) != wanted or len(found) != len(wanted):
        sys.exit(f"{path}: the marks differ from the schema's titles: {wanted.symmetric_difference(found)}")
    tables = Tables(defs, anchors(page))
    new = MARKS.sub(lambda m: m[1] + m[2] + "\n".join(tables.table(m[1])), page)
    if "--check" not in sys.argv:
        path.write_text(new)
    elif new != page:
        sys.exit(f"{path} does not have the schema's members; run scripts/make-json-doc.py")


if __name__ == "__main__":
    main()
