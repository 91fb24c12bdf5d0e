"""Writes the seeds of the target `template`: the style templates with a conversation, and from the
cases of the comparison with Jinja2 the first of each kind that renders.

    .venv/bin/python fuzz/make_template_corpus.py      → fuzz/corpus/template/
"""
import json
import pathlib
import re
import sys
import warnings

ROOT = pathlib.Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests" / "text"))

import template_cases
import template_conversations as talk
from jinja_reference import make_environment, render_all
from template_programs import Conversations, Programs

CORPUS = ROOT / "fuzz" / "corpus" / "template"
SEPARATOR = "\x1e"
LARGEST = 12_000  # bytes of a seed
PROGRAMS = 40


def put(name, source, context):
    (CORPUS / name).write_text(source + SEPARATOR + json.dumps(context, ensure_ascii=False), encoding="utf-8")


def first_of_each(cases, renders):
    """One case for each thing that is done to a value, whatever the value."""
    seen = set()
    for case in cases:
        kind = re.sub(r"^\{\{ \(?[^)]*\)?", "", case)
        if kind not in seen and renders(case):
            seen.add(kind)
            yield case


def main():
    warnings.simplefilter("ignore", SyntaxWarning)
    CORPUS.mkdir(parents=True, exist_ok=True)
    environment = make_environment()
    messages = [talk.SYSTEM, talk.USER, talk.THOUGHT, talk.USER, talk.CALLS, talk.RESULT, talk.ANSWER]
    context = {"messages": messages, "tools": [talk.TOOL], "add_generation_prompt": True, "bos_token": "<s>", "eos_token": "</s>"}
    for path in sorted((ROOT / "tests" / "data" / "templates").glob("*.jinja")):
        put("style_" + path.stem, path.read_text(encoding="utf-8"), context)

    def renders(case):
        return not isinstance(render_all(environment, case, [template_cases.CONTEXT])[0], Exception)

    batches = [""]
    for case in first_of_each(template_cases.cases(), renders):
        if len(batches[-1]) + len(case) > LARGEST:
            batches.append("")
        batches[-1] += case + "\n"
    for number, batch in enumerate(batches):
        put(f"cases_{number}", batch, template_cases.CONTEXT)

    written = seed = 0
    while written < PROGRAMS:
        source, context = Programs(seed).program(), Conversations(seed).context()
        if len(source) > 600 and not isinstance(render_all(environment, source, [context])[0], Exception):
            put(f"program_{seed}", source, context)
            written += 1
        seed += 1


if __name__ == "__main__":
    main()
