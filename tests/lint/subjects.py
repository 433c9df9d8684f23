#!/usr/bin/env python3
"""Subjects of new commits: `area: do what`, imperative, at most 72 characters.

usage: subjects.py SOURCE_DIR

New is what comes after BEGIN, and what the default branch of the remote does not have yet. Merges
are left out. Without a repository there is nothing to check: exit code 77.
"""
import pathlib
import re
import subprocess
import sys

BEGIN = "16ba859e190a0bbdfc96faff8a487a9bc552e3ae"  # the rule is younger than what came before
LONGEST = 72
FORM = re.compile(r"(?:[a-z0-9][\w.+-]*(?:/[\w.+-]+)*)(?:, [\w./+-]+)*: (?P<verb>[a-z][\w-]*),?(?: .*)?[^ .]")
# No imperative: articles, "adds", "added", "adding"; but "pass", "embed", "bring".
NO_VERB = re.compile(r"a|an|the|no|some|\w+[^aisu]s|\w+ed|\w+ing")
VERBS = {"bring", "embed", "feed", "need", "ping", "proceed", "seed", "shed", "speed", "string"}


def wrong(subject):
    """What is wrong with it, or None."""
    if re.match('Revert "', subject):
        return None
    if len(subject) > LONGEST:
        return f"has {len(subject)} characters, at most {LONGEST}"
    form = FORM.fullmatch(subject)
    if not form:
        return "is not `area: do what`, with an area and a verb in lower case and no full stop"
    if NO_VERB.fullmatch(form["verb"]) and form["verb"] not in VERBS:
        return f"does not say what to do: '{form['verb']}' is no imperative"
    return None


def git(root, *words):
    """What it prints, or None if it fails."""
    try:
        done = subprocess.run(["git", "-C", root, *words], capture_output=True, text=True)
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def has(root, commit):
    return git(root, "rev-parse", "--quiet", "--verify", commit + "^{commit}") is not None


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    root = pathlib.Path(sys.argv[1]).resolve()
    top = git(root, "rev-parse", "--show-toplevel")
    if top is None or pathlib.Path(top).resolve() != root:
        skip("this is no git repository, or git cannot read it")
    known = [c for c in (BEGIN, "refs/remotes/origin/HEAD") if has(root, c)]
    # A shallow clone that does not reach BEGIN has only commits after it.
    if not known and git(root, "rev-parse", "--is-shallow-repository") != "true":
        skip(f"this repository has no commit {BEGIN[:7]}, after which the rule begins")
    log = git(root, "log", "--no-merges", "--format=%h %s", "HEAD", *(f"^{c}" for c in known))
    if log is None:
        skip("git has no commits here")
    lines = log.splitlines()
    findings = [f"{line}\n    {why}" for line in lines if (why := wrong(line.partition(" ")[2]))]
    print("\n".join(findings) if findings else f"subjects of {len(lines)} commits: clean")
    sys.exit(1 if findings else 0)


if __name__ == "__main__":
    main()
