#!/usr/bin/env python3
"""Chat templates as jinja2 renders them in the sandbox of Hugging Face's transformers: the same text,
byte for byte, for every template and conversation; where jinja2 fails, we fail; and expressions that
were put together at random.

usage: test_chat_jinja.py RENDER_CHAT [SEED]
"""
import json
import random
import subprocess
import sys
import warnings

try:
    from sandbox import environment
except ImportError:
    print("skipped: no jinja2 (Debian: python3-jinja2)")
    sys.exit(77)

from chat_templates import EXPRESSIONS, TEMPLATES

warnings.simplefilter("ignore")  # of Python, about what random expressions do
N_CONVERSATIONS, N_EXPRESSIONS = 25, 2000
RENDER, SEED = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 20
R = random.Random(SEED)


WORDS = "plain naïve 你好 🎉 <b> 'single' \"double\" tab\there {{ x }} {% if %} back\\slash & 3.14 </think> <think> É".split(" ")


def text():
    words = " ".join(R.choice(WORDS) for _ in range(R.randint(0, 8)))
    return R.choice(["", "", "\n", "  "]) + words + R.choice(["", "", "\n\n", " "])


def arguments():
    return {"city": text(), "n": R.randint(-3, 99), "x": R.choice([1.0, 0.1, True, None, [1, "a"], {"k": "v"}])}


def tool(i):
    properties = {R.choice("abc") + str(k): {"type": R.choice(["string", "integer", "array", ["string", "null"]])}
                  for k in range(R.randint(0, 3))}
    if R.random() < 0.5:
        properties["e"] = {"type": "string", "enum": ["x", "y"], "description": text()}
    return {"type": "function", "function": {"name": f"f{i}", "description": text(), "parameters": {
        "type": "object", "properties": properties, "required": sorted(properties)[:1]}}}


def conversation():
    messages = [{"role": "system", "content": text()}] if R.random() < 0.4 else []
    for _ in range(R.randint(1, 3)):
        messages.append({"role": "user", "content": text()})
        if R.random() < 0.2:
            messages[-1]["content"] = [{"type": "text", "text": text()}, {"type": "text", "text": text()}]
        answer = {"role": "assistant", "content": text()}
        if R.random() < 0.3:
            answer["content"] = "<think>\n" + text() + "</think>\n\n" + text()
        if R.random() < 0.2:
            answer["thoughts"] = text()
        if R.random() < 0.2:
            call = arguments() if R.random() < 0.7 else json.dumps(arguments())
            answer["tool_calls"] = [{"type": "function", "function": {"name": "f0", "arguments": call}}] * R.randint(1, 2)
            answer["content"] = R.choice([None, "", text()])
            messages += [answer, {"role": "tool", "content": text()}]
            answer = {"role": "assistant", "content": text()}
        messages.append(answer)
    names = {"messages": messages, "tools": [tool(i) for i in range(R.randint(0, 3))] or None,
             "add_generation_prompt": R.random() < 0.5, "bos_token": "<s>", "eos_token": "</s>"}
    if R.random() < 0.3:
        names["thinking"] = R.random() < 0.5
    if R.random() < 0.2:
        names["strict"] = True
    return names


ATOMS = ["1", "0", "-2", "2.5", "'ab'", "''", "'A b\\n'", "none", "true", "nope", "[1, 2]", "[]", "['b', 'a']",
         "{'a': 1}", "(1, 'x')", "messages", "messages[0]", "messages[0].content", "bos_token", "(range(3) | list)"]
SHAPES = ["({} + {})", "({} ~ {})", "({} * {})", "({} % {})", "({} // {})", "({} / {})", "({} - {})", "({} == {})",
          "({} < {})", "({} in {})", "({} and {})", "({} or {})", "({} if {} else {})", "(not {})", "{}[{}]",
          "{}[{}:]", "{}[:{}]", "{}[::{}]", "{} | upper", "({} | length)", "({} | list)", "({} | join({}))",
          "({} | first)", "({} | default({}))", "({} | string)", "({} | tojson)", "({} | trim)", "({} | sort)",
          "({} | replace({}, {}))", "({} | map('upper') | list)", "({} | int)", "({} | reverse | list)",
          "({} is defined)", "({} is string)", "({} is iterable)", "({} is mapping)", "({} is sequence)",
          "({} is number)", "({} is odd)", "({} is eq {})", "({} | string).split({})", "({} | string).strip({})",
          "({} | string).startswith({})", "({} | string).replace({}, {})", "({} | string).find({})", "{}.a",
          "{}.get({})", "({} | unique | list)", "({} | select | list)", "({} | items | list)", "({} | indent({}))"]


def expression(depth):
    if depth == 0 or R.random() < 0.1:
        return R.choice(ATOMS)
    shape = R.choice(SHAPES)
    return shape.format(*[expression(depth - 1) for _ in range(shape.count("{}"))])


def expected(environment, template, names):
    try:
        return environment.from_string(template).render(**json.loads(json.dumps(names)))
    except Exception as e:  # whatever Python raises
        return e


def main():
    e = environment()
    conversations = [conversation() for _ in range(N_CONVERSATIONS)]
    jobs = [(t, names) for t in TEMPLATES for names in conversations]
    n_fixed = len(jobs)
    jobs += [("{{ " + expression(R.randint(1, 3)) + " }}", conversations[0]) for _ in range(N_EXPRESSIONS)]
    lines = "".join(json.dumps({"template": t, "names": names}) + "\n" for t, names in jobs)
    done = subprocess.run([RENDER], input=lines, capture_output=True, text=True, timeout=300)
    if done.returncode:
        sys.exit(f"{RENDER}: exit code {done.returncode}: {done.stderr}")
    n_equal = n_failed = n_refused = n_wrong = 0
    for i, ((template, names), line) in enumerate(zip(jobs, done.stdout.splitlines(), strict=True)):
        got, want = json.loads(line), expected(e, template, names)
        if "error" in got and isinstance(want, Exception):
            n_failed += 1
        elif got.get("text") == want:
            n_equal += 1
        elif "error" in got and i >= n_fixed:
            n_refused += 1  # what Python does with it is not known here
        elif isinstance(want, Exception) and i >= n_fixed:
            n_refused += 1  # what Python does not show, or not in this way
        else:
            n_wrong += 1
            if n_wrong < 10:
                print(f"seed {SEED}, template:\n{template}\nexpected: {want!r}\nfound:    {got.get('text', got)!r}")
    print(f"{n_equal} equal, {n_failed} fail in both, {n_refused} random ones fail in one, {n_wrong} wrong")
    if n_wrong or n_refused > N_EXPRESSIONS // 20 or n_equal < n_fixed // 2:
        sys.exit(1)


main()
