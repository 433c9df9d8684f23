#!/usr/bin/env python3
"""Bring the tables of members in docs/json.md up to date with docs/schema/assay.schema.json.

usage: make-json-doc.py docs/json.md            rewrite what stands between the marks
       make-json-doc.py --check docs/json.md    only compare; exit code 1 where they differ

Between `<!-- begin NAME -->` and `<!-- end NAME -->` stands what `$defs` has as NAME: its description
and a row for each member. Each definition with a title has its marks, after a heading of its own,
and a member of that kind has a link to it in place of rows. Those without a title have their rows
wherever they are used. Members that only say how sure another one is stand in its row; `schema` and
`schema_version` are in the sentence above a table.
"""
import json
import pathlib
import re
import sys

SCHEMA = pathlib.Path(__file__).resolve().parent.parent / "docs" / "schema" / "assay.schema.json"
ERRORS = {"Its standard error.", "Its uncertainty.",
          "The same if lots are independent, tokens are not; null where it is not known."}
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


def or_null(kinds):
    known = [kind for kind in kinds if kind != "null"]
    return words(known) + "?" * (len(known) < len(kinds)) if known else "null"


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
                return or_null([self.kind(inner) for inner in node[choice]])
        values = node.get("enum", [node["const"]] if "const" in node else None)
        if values:
            return or_null([json.dumps(value) for value in values])
        return or_null(node["type"] if isinstance(node["type"], list) else [node["type"]])

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
            yield prefix + "*", self.link(name), ""
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
        known = {key: member.get("const") for key, member in node["properties"].items()}
        yield from ("", node["description"])
        if known.get("schema"):
            yield from ("", f"`schema` is \"{known['schema']}\", `schema_version` {known['schema_version']}.")
        yield from ("", "| member | type | what |", "| --- | --- | --- |")
        rows = [row for row in self.rows(node) if row[0] not in ("schema", "schema_version")]
        behind = {path: [] for path, _, _ in rows}
        for path, _, what in rows:
            of = re.sub(r"(_lot)?_error$", "", path)
            if what in ERRORS and of in behind:
                behind[of].append(path)
        errors = {path for these in behind.values() for path in these}
        for path, kind, what in rows:
            if path not in errors:
                names = [path, *(error.removeprefix(path) for error in behind[path])]
                shown = ", ".join(f"`{name}`" for name in names)
                said = what.replace("|", r"\|") + " " if what else ""
                yield f"| {shown} | {kind} | {said}|"
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
