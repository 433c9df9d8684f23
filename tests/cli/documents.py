"""What the tests of result documents share: docs/schema/assay.schema.json, and how it is held
against documents."""
import json
import pathlib

try:
    import jsonschema
except ImportError:  # python3-jsonschema, which scripts/deps.sh installs
    jsonschema = None

SCHEMA = json.loads((pathlib.Path(__file__).resolve().parents[2] / "docs" / "schema" /
                     "assay.schema.json").read_text())


def without_run(document):
    """Everything that may not differ from run to run."""
    return {key: value for key, value in document.items() if key != "run"}


def validator(pointer=""):
    """A validator of the schema, or of a place in it."""
    schema = {"$ref": "#" + pointer, "$defs": SCHEMA["$defs"]} if pointer else SCHEMA
    return jsonschema.Draft202012Validator(schema)


def errors(document):
    """What the schema has against a document, a sentence each."""
    return [f"{error.json_path}: {error.message}" for error in validator().iter_errors(document)]


def check(test, document):
    """Every member is in the schema, of its type, and none is missing. Without the library nothing
    is looked at; then cli_json_schema is skipped and says so."""
    if jsonschema:
        test.assertEqual(errors(document), [])


SERVER_CHECK, KLD_BOUNDS = "/$defs/assay-server-check", "/$defs/assay-kld-bounds"
# Made by tests that have a server to ask: test_server_check.py and test_server_base.py.
OF_SERVERS = (SERVER_CHECK, KLD_BOUNDS, "/$defs/asked-server")


def members(node=None, pointer=""):
    """Where the schema has each member: JSON pointers."""
    node = SCHEMA["$defs"] if node is None else node
    pointer = pointer or "/$defs"
    for key, inner in node.items() if isinstance(node, dict) else enumerate(node):
        at = f"{pointer}/{key}"
        if key == "properties":
            yield from (f"{at}/{name}" for name in inner)
        elif key == "additionalProperties" and inner:
            yield at
        if isinstance(inner, (dict, list)):
            yield from members(inner, at)


def seen(value, pointer):
    """The members of `members` that a document has with a value, from where it is described."""
    node = SCHEMA
    for key in pointer.split("/")[1:]:
        node = node[int(key) if isinstance(node, list) else key]
    if "$ref" in node:
        yield node["$ref"][1:]
        yield from seen(value, node["$ref"][1:])
    for key in ("allOf", "anyOf", "oneOf"):
        for i in range(len(node.get(key, ()))):
            at = f"{pointer}/{key}/{i}"
            if key == "allOf" or validator(at).is_valid(value):
                yield from seen(value, at)
    if isinstance(value, list) and "items" in node:
        for inner in value:
            yield from seen(inner, pointer + "/items")
    for name, inner in value.items() if isinstance(value, dict) else ():
        own = node.get("properties", {})
        at = f"{pointer}/properties/{name}" if name in own else pointer + "/additionalProperties"
        described = own.get(name, node.get("additionalProperties"))
        if described and (inner is not None or described.get("type") == "null"):
            yield at
            yield from seen(inner, at)
