"""Writes the seeds of the target `template`: the style templates with a conversation, a sample of the
cases of the comparison with Jinja2, and programs of its generator.

    .venv/bin/python fuzz/make_template_corpus.py      → fuzz/corpus/template/
"""
import json
import pathlib
import random
import sys
import warnings

ROOT = pathlib.Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests" / "text"))

import template_cases
import template_conversations as talk
from jinja_reference import make_environment, render_all
from template_programs import Conversations, Programs

CORPUS = ROOT / "fuzz" / "corpus" / "template"
NEXT_TEMPLATE, CONVERSATION = "\x1d", "\x1e"
LARGEST = 5_000  # bytes of templates in a seed
PROGRAMS = 12


def put(name, sources, context):
    text = NEXT_TEMPLATE.join(sources) + CONVERSATION + json.dumps(context, ensure_ascii=False)
    (CORPUS / name).write_text(text, encoding="utf-8", newline="")


def in_batches(sources):
    batch, size = [], 0
    for source in sources:
        if size + len(source) > LARGEST:
            yield batch
            batch, size = [], 0
        batch.append(source)
        size += len(source)
    yield batch


def some_cases(rng):
    """Everything that is done to values, each time to a few of them."""
    of = template_cases
    yield from rng.sample(list(of.whitespace()), 20)
    yield from of.SYNTAX + of.SCOPES
    yield from (f"{{{{ {expression} }}}}" for expression in of.MARKUP)
    yield from (f"{{{{ '{form}'.format(1, 'b', l, d, a='x', k=d, w=5) }}}}" for form in of.FIELDS)
    for values, names, count, between in ((of.VALUES, of.FILTERS, 4, "|"), (of.VALUES, of.TESTS, 3, " is "),
                                          (of.TEXTS[3:], of.METHODS, 2, "."), (of.OBJECTS, of.OBJECT_METHODS, 5, ".")):
        for name in names:
            yield from (f"{{{{ ({value}){between}{name} }}}}" for value in rng.sample(values, count))
    for method in of.METHODS:
        yield from (f"{{{{ {value}.{method} }}}}" for value in ("uni", "s"))
    for operator in of.OPERATORS:
        yield from (f"{{{{ ({rng.choice(of.OPERANDS)}) {operator} ({rng.choice(of.OPERANDS)}) }}}}" for _ in range(20))
    for form in of.PERCENTS:
        yield from (f"{{{{ '{form}' % {value} }}}}" for value in rng.sample(of.PERCENT_VALUES, 4))
    for spec in of.SPECS:
        yield from (f"{{{{ '{{:{spec}}}'.format({value}) }}}}" for value in rng.sample(of.SPEC_VALUES, 4))


def main():
    warnings.simplefilter("ignore", SyntaxWarning)
    CORPUS.mkdir(parents=True, exist_ok=True)
    messages = [talk.SYSTEM, talk.USER, talk.THOUGHT, talk.USER, talk.CALLS, talk.RESULT, talk.ANSWER]
    context = {"messages": messages, "tools": [talk.TOOL], "add_generation_prompt": True, "bos_token": "<s>",
               "eos_token": {"content": "</s>"}, "chat_template": [{"name": "tool_use", "template": "{{ tools }}"}],
               "extra_special_tokens": {"image_token": "<image>"}}
    for path in sorted((ROOT / "tests" / "data" / "templates").glob("*.jinja")):
        put("style_" + path.stem, [path.read_text(encoding="utf-8")], context)

    for number, batch in enumerate(in_batches(some_cases(random.Random(1)))):
        put(f"cases_{number}", batch, template_cases.CONTEXT)

    environment = make_environment()
    written = seed = 0
    while written < PROGRAMS:
        source, context = Programs(seed).program(), Conversations(seed).context()
        if len(source) > 600 and not isinstance(render_all(environment, source, [context])[0], Exception):
            put(f"program_{seed}", [source], context)
            written += 1
        seed += 1


if __name__ == "__main__":
    main()
