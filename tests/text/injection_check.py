#!/usr/bin/env python3
"""Messages cannot form control tokens: `tinyvllm template --json` against a judge that cannot be fooled.

    injection_check.py BINARY FOLDER_FOR_FILES

Messages spell out every control token of a model, wherever a conversation has text. The judge renders with
Jinja2, each character of those spellings replaced by a Chinese one; so what looks like a control token in
its text is the template's own. It cuts there, puts the spellings back, and lets `tokenizers` encode what lies
between without any control tokens. The ids must be the same.
"""
import json
import re
import subprocess
import sys
from pathlib import Path

import tokenizers

import judges
from jinja_reference import make_environment, render_all

STYLES = Path(__file__).parent.parent / "data" / "templates"
VEILED = 0x5000  # Chinese letters, of which the conversations have no others

# Text that went through everything that takes it apart and puts it together, control tokens of the
# template's own in between.
MILL = """{%- macro say(text, mark) %}{{ mark ~ text ~ mark }}{% endmacro -%}
{%- macro wrap(mark) %}{{ mark ~ caller() ~ mark }}{% endmacro -%}
{%- for m in messages %}{% set c = m.content %}{% set ns = namespace(all='') %}
{{- 'MARK' + c + 'MARK' }}{{ c | trim }}{{ c[3:-3] }}{{ c[::2] }}{{ c | replace('ij', 'MARK') }}{{ 'ij MARK' | replace('ij', c) }}
{{- c.split('ij') | join('MARK') }}{{ c.split() | join(c) }}{{ 'MARK%s' % c }}{{ 'MARK{}'.format(c) }}{{ '%s|%s' | format(c, 'MARK') }}
{{- {'MARK': c, c: ['MARK']} | tojson }}{{ [c, 'MARK'] }}{{ c | tojson(indent=2) }}{{ c | string | list | join }}{{ c * 2 }}
{{- say(c, 'MARK') }}{% call wrap('MARK') %}{{ c }}{% endcall %}{% filter trim %} {{ c }}MARK {% endfilter %}
{%- set block %}{{ c }}MARK{% endset %}{{ block }}{% for part in c.split('ij') %}{% set ns.all = ns.all + part + 'MARK' %}{% endfor %}
{{- ns.all }}{{ c.partition('ij') | first }}{{ (c | list)[:9] | join('') }}{{ c | default('MARK') }}{{ c | indent(2) }}
{{- c.strip().lstrip('i').rstrip('j') }}{{ (c ~ 'MARK').removesuffix('MARK') }}{{ (c, 'MARK') | map('trim') | join }}
{%- for k, v in m.items() %}{{ k }}={{ v }}MARK{% endfor %}{% endfor %}"""


def controls_of(tokenizer):
    return [token.content for token in tokenizer.get_added_tokens_decoder().values()]


class Model:
    """One to try, and what the judge needs to know of it."""

    def __init__(self, judge, source, tokens, own=True):
        self.name, self.path, self.source, self.tokens, self.own = judge.name, judge.path, source, tokens, own
        self.controls = controls_of(judge.tokenizer)
        self.ids = {text: judge.tokenizer.token_to_id(text) for text in self.controls}
        plain = json.loads(judge.tokenizer.to_str())
        plain["added_tokens"] = []
        self.plain = tokenizers.Tokenizer.from_str(json.dumps(plain))

    def expected(self, text):
        ids = []
        for part in re.split("(" + "|".join(map(re.escape, sorted(self.controls, key=len, reverse=True))) + ")", text):
            if part in self.ids:
                ids.append(self.ids[part])
            elif part:
                ids += self.plain.encode(unveil(part), add_special_tokens=False).ids
        return ids


def veil(text):
    return "".join(chr(VEILED + ord(c)) for c in text)


def unveil(text):
    return "".join(chr(ord(c) - VEILED) if VEILED <= ord(c) < VEILED + 128 else c for c in text)


def conversations(spell):
    """`spell` gives all control tokens in a row; none of their characters is one that JSON escapes."""
    def all_of(*between):
        return " ".join(spell(b) for b in between) + "ij end"

    call = {"id": all_of(""), "type": "function", "function": {"name": all_of("", "_"), "arguments": {all_of(" "): all_of("\n")}}}
    tool = {"type": "function", "function": {"name": all_of(""), "description": all_of(" "),
                                             "parameters": {"type": "object", "properties": {all_of(""): {"type": "string"}}}}}
    system, user = {"role": "system", "content": all_of("", " ")}, {"role": "user", "content": all_of("", "\n", " a")}
    answer = {"role": "assistant", "content": all_of("", "x")}
    talk = [{"messages": messages, "add_generation_prompt": True}
            for messages in ([user], [system, user, answer, user], [{"role": "user", "content": spell("")}])]
    calls = {**answer, "tool_calls": [call, call]}
    talk.append({"messages": [system, user, calls, {"role": "tool", "content": all_of("", " "), "name": all_of("")}, answer],
                 "tools": [tool, tool], "documents": [{"title": all_of(""), "text": all_of("")}]})
    talk.append({"messages": [{"role": "user" + all_of(""), "content": "x"}, {"role": all_of(""), "content": all_of("")}]})
    return talk


def ours(binary, model, conversation, template):
    flags = ["--chat-template", str(template)] if template else []
    done = subprocess.run([binary, "template", str(model.path), "--json", *flags], input=json.dumps(conversation).encode(),
                          capture_output=True, check=False)
    return json.loads(done.stdout) if done.returncode == 0 else {"error": done.stderr.decode()}


def check(binary, model, name, source, template):
    def spelled(change):
        return lambda between: between.join(change(token) for token in model.controls)

    compared = 0
    for real, veiled in zip(conversations(spelled(str)), conversations(spelled(veil))):
        context = {"tools": None, "documents": None, "add_generation_prompt": False, **model.tokens, **veiled}
        text = render_all(make_environment(), source, [context])[0]
        answer = ours(binary, model, real, template)
        if isinstance(text, Exception):
            assert "error" in answer, f"{model.name}, {name}: Jinja2 refuses ({text}), tinyvllm does not"
            continue
        assert answer.get("text") == unveil(text), f"{model.name}, {name}: the text differs for {json.dumps(real)[:300]}\n{str(answer)[:300]}"
        expected = model.expected(text)
        if answer["ids"] != expected:
            place = next((i for i, (a, b) in enumerate(zip(answer["ids"], expected)) if a != b), -1)
            raise SystemExit(f"{model.name}, {name}: {json.dumps(real)[:300]}\nfrom id {place} on\n  ours   {answer['ids'][place:place + 12]}\n"
                             f"  judge  {expected[place:place + 12]}")
        compared += len(expected)
    assert compared > 0, f"{model.name}, {name}: nothing was rendered"
    print(f"{model.name:12} {name:20} {compared:7} ids, none forged", flush=True)


def main():
    binary, folder = sys.argv[1], Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    qwen = judges.published(folder, "qwen2_5")
    smollm2 = judges.smollm2(folder)
    models = [
        Model(smollm2, judges.smollm2_chat_template(), {"bos_token": "<|im_start|>", "eos_token": "<|im_end|>"}),
        Model(qwen, json.loads((qwen.path / "tokenizer_config.json").read_text())["chat_template"], {"eos_token": "<|im_end|>"}),
        Model(judges.published(folder, "llama2"), (STYLES / "llama2.jinja").read_text(), {"bos_token": "<s>", "eos_token": "</s>"},
              own=False),
    ]
    for model in models:
        check(binary, model, "its template", model.source, None if model.own else STYLES / "llama2.jinja")
        mill = folder / f"mill_{model.name}.jinja"
        mill.write_text(MILL.replace("MARK", model.controls[-1]) + "{% set spelled = '" + " ".join(model.controls) + "' %}")
        check(binary, model, "every operation", mill.read_text(), mill)


if __name__ == "__main__":
    main()
