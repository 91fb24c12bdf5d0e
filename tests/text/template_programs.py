"""Random templates in the language that chat templates are written in, and random conversations to
render them with. Everything follows from the seed."""
import random

WORDS = ["user", "system", "assistant", "tool", "hello", "World", "x", "", " ", "a b", "<|im_start|>", "\\n", "ß", "漢字", "É",
         "🎉", "foo-bar", "Foo Bar", "  pad ", "1", "42", "3.5", "-7", "1e3", "true", "<b>&", "it's", 'say \\"hi\\"', "a,b,,c",
         "\\t", "line\\nbreak", "ABC", "{x}", "{}", "{0}-{1}", "%s", "%d!", "%(a)s", "ΑΣ", "ǆ", "0x1F", "a.b.c", "_priv"]
NAMES = ["a", "b", "c", "item", "msg", "result", "n"]  # never "ns": a set block can write into a dict, which we refuse
KEYS = ["role", "content", "name", "type", "text", "tool_calls", "function", "arguments", "missing", "id", "a", "b", "update",
        "__class__", "_x"]
ROLES = ["system", "user", "assistant", "tool", "developer"]
TESTS = ["defined", "undefined", "none", "string", "mapping", "sequence", "iterable", "number", "boolean", "true", "false",
         "integer", "float", "odd", "even", "lower", "upper", "callable", "escaped", "filter", "test"]
TEST_WITH_ARGUMENT = ["divisibleby", "eq", "equalto", "ne", "lt", "gt", "le", "ge", "lessthan", "greaterthan", "in", "sameas"]


class Programs:
    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.macros = []
        self.loops = 0

    # -- small choices

    def pick(self, *options):
        return self.rng.choice(options)

    def chance(self, percent):
        return self.rng.random() * 100 < percent

    def several(self, least, most, make):
        return [make() for _ in range(self.rng.randint(least, most))]

    # -- literals and names

    def literal_string(self):
        quote = self.pick("'", '"')
        word = self.rng.choice(WORDS)
        if quote == "'":
            word = word.replace("'", "\\'").replace('\\"', '"')
        elif '"' in word and '\\"' not in word:
            word = word.replace('"', '\\"')
        if self.chance(3):
            word += self.pick("\\x41", "\\u00e9", "\\101", "\\U0001F389", "\\q", "\\'", "\\\\")
        if self.chance(2):
            return f"{quote}{word}{quote} 'more'"
        return quote + word + quote

    def literal_int(self):
        if self.chance(3):
            return self.pick("1_000", "0x1F", "0b101", "0o17")
        return str(self.rng.choice([0, 1, 2, 3, 5, 7, 10, 100, 255, 65536, 1_000_000]))

    def literal_float(self):
        return self.pick("0.5", "1.0", "2.25", "1e3", "3.14159", "1e-7", "100.0", "1e16", "0.1", "1_0.5", "2.5E-3")

    def name(self):
        return self.rng.choice(NAMES)

    def variable(self):
        return self.pick("messages", "tools", "bos_token", "add_generation_prompt", "number", "ratio", "word", "items",
                         "table", "nothing", "unset", "ns", *NAMES)

    # -- expressions by the kind of value they should mostly have

    def expr(self, depth, kind=None):
        kind = kind or self.pick("str", "str", "str", "int", "num", "list", "dict", "bool", "any", "any")
        if self.chance(1):
            kind = "any"
        if depth <= 0:
            return self.leaf(kind)
        return getattr(self, "expr_" + kind)(depth - 1)

    def leaf(self, kind):
        if self.chance(3):
            return self.variable()
        if kind == "str":
            return self.pick(self.literal_string(), self.literal_string(), "bos_token", "word", "messages[0].role",
                             "messages[0]['content']", "loop.index" if self.loops else "word")
        if kind == "int":
            return self.pick(self.literal_int(), "number", "messages|length", "-" + self.literal_int(),
                             "loop.index0" if self.loops else "number")
        if kind == "num":
            return self.pick(self.literal_int(), self.literal_float(), "ratio", "number", "-" + self.literal_float())
        if kind == "list":
            return self.pick("messages", "items", "[]", "[1, 2, 3]", "['b', 'a', 'C']", "tools", "range(3)", "table.values()",
                             "'abc'", "(1, 2)", "[none, 1.5, 'x', true]")
        if kind == "dict":
            return self.pick("messages[0]", "table", "{}", "{'a': 1, 'b': 'x'}", "tools[0]", "messages[-1]", "dict(a=1)")
        if kind == "bool":
            return self.pick("true", "false", "add_generation_prompt", *(["loop.first", "loop.last"] if self.loops else ["none"]))
        return self.pick(self.variable(), self.literal_string(), self.literal_int(), "none", "messages[0]", "[1]")

    def expr_any(self, depth):
        return self.pick(self.attribute, self.subscript, self.conditional, self.call, self.logic, self.concat,
                         lambda d: self.expr(d), self.lazy, self.default, self.parenthesized)(depth)

    def expr_str(self, depth):
        return self.pick(self.concat, self.plus, self.text_filter, self.text_filter, self.text_method, self.text_method,
                         self.slice, self.percent, self.braces, self.conditional, self.join, self.json, self.default,
                         lambda d: self.leaf("str"), self.repeat, self.call)(depth)

    def expr_int(self, depth):
        return self.pick(lambda d: f"{self.operand(d, 'list')}|length", lambda d: f"{self.operand(d)}|int", self.arithmetic,
                         self.text_number_method, lambda d: self.leaf("int"), lambda d: f"{self.operand(d, 'str')}|wordcount",
                         lambda d: f"({self.expr(d, 'int')})|abs")(depth)

    def expr_num(self, depth):
        return self.pick(self.arithmetic, self.arithmetic, self.number_filter, lambda d: self.leaf("num"),
                         lambda d: f"{self.number_list()}|sum", lambda d: f"-{self.leaf('num')}",
                         lambda d: f"{self.operand(d, 'str')}|float")(depth)

    def expr_list(self, depth):
        return self.pick(self.list_literal, self.list_filter, self.list_filter, self.slice, lambda d: self.leaf("list"), self.lazy,
                         lambda d: f"{self.lazy(d)}|list", self.text_list_method,
                         lambda d: f"({self.expr(d, 'list')} + {self.expr(d, 'list')})",
                         lambda d: f"{self.operand(d, 'dict')}.{self.pick('items', 'keys', 'values')}()", self.range)(depth)

    def expr_dict(self, depth):
        return self.pick(self.dict_literal, lambda d: self.leaf("dict"), lambda d: f"{self.operand(d, 'list')}[0]",
                         lambda d: f"{self.operand(d, 'list')}|{self.pick('first', 'last')}",
                         lambda d: f"dict({self.expr(d, 'dict')}, x={self.expr(d)})")(depth)

    def expr_bool(self, depth):
        return self.pick(self.comparison, self.comparison, self.test, self.test, self.logic, self.membership,
                         lambda d: f"not {self.expr(d)}", self.text_bool_method, lambda d: self.leaf("bool"))(depth)

    # -- building blocks

    def parenthesized(self, depth):
        return f"({self.expr(depth)})"

    def attribute(self, depth):
        return f"{self.operand(depth, 'dict')}.{self.rng.choice(KEYS)}"

    def subscript(self, depth):
        key = self.pick(f"'{self.rng.choice(KEYS)}'", self.literal_int(), "-1", self.expr(depth - 1))
        return f"{self.operand(depth, self.pick('dict', 'list', 'str'))}[{key}]"

    def operand(self, depth, kind=None):
        """Something that may stand before a dot, a bracket or a pipe."""
        inner = self.expr(depth, kind)
        return inner if inner.isidentifier() else f"({inner})"

    def number_list(self):
        return self.pick("[1, 2, 3]", "range(4)", "[0.5, 2]", f"[{self.leaf('num')}, {self.leaf('num')}]", "[]", "items")

    def slice(self, depth):
        # Jinja2 evaluates a constant slice by other rules than one at run time, so none is constant.
        kind = self.pick("str", "list")
        sequence = self.pick(f"(word ~ {self.expr(depth, kind)})", f"(unset or {self.expr(depth, kind)})", "messages", "word",
                             f"(items + {self.expr(depth, 'list')})")
        part = lambda: self.pick("", "", "1", "-1", "2", "0", "-2", "100", "-100", self.leaf("int"))
        step = self.pick("", "", "", ":2", ":-1", ":", ":-2", ":0" if self.chance(10) else ":3")
        return f"{sequence}[{part()}:{part()}{step}]"

    def conditional(self, depth):
        otherwise = "" if self.chance(15) else f" else {self.expr(depth)}"
        return f"({self.expr(depth)} if {self.expr(depth, 'bool')}{otherwise})"

    def logic(self, depth):
        return f"({self.expr(depth)} {self.pick('and', 'or')} {self.expr(depth)})"

    def comparison(self, depth):
        kind = self.pick("num", "str", "num", "any", "list")
        parts = self.several(2, 3, lambda: self.expr(depth, kind))
        text = parts[0]
        for part in parts[1:]:
            text += f" {self.pick('==', '!=', '<', '<=', '>', '>=', '==')} {part}"
        return f"({text})"

    def membership(self, depth):
        return f"({self.expr(depth, 'str')} {self.pick('in', 'not in')} {self.expr(depth, self.pick('list', 'dict', 'str'))})"

    def test(self, depth):
        negated = self.pick("", "", "not ")
        if self.chance(60):
            return f"({self.expr(depth)} is {negated}{self.rng.choice(TESTS)})"
        name = self.rng.choice(TEST_WITH_ARGUMENT)
        argument = self.expr(depth, self.pick("num", "any", "list"))
        return f"({self.expr(depth)} is {negated}{name}({argument}))"

    def arithmetic(self, depth):
        if self.chance(5):
            return f"({self.pick(self.literal_int(), self.literal_float())} ** {self.pick('2', '0', '-1', '0.5', '3')})"
        left, right = self.expr(depth, "num"), self.expr(depth, "num")
        return f"({left} {self.pick('+', '-', '*', '/', '//', '%', '+', '-')} {right})"

    def concat(self, depth):
        return "(" + " ~ ".join(self.several(2, 3, lambda: self.expr(depth))) + ")"

    def plus(self, depth):
        return f"({self.expr(depth, 'str')} + {self.expr(depth, 'str')})"

    def repeat(self, depth):
        return f"({self.expr(depth, self.pick('str', 'list'))} * {self.pick('0', '1', '2', '3', '-1', self.leaf('int'))})" \
            .replace("1000000", "3").replace("65536", "2")

    def default(self, depth):
        second = self.pick("", ", true", ", false", ", boolean=true")
        return f"{self.operand(depth)}|{self.pick('default', 'd')}({self.expr(depth)}{second})"

    def json(self, depth):
        options = self.pick("", "", "(indent=2)", "(indent=4)", "(ensure_ascii=True)", "(sort_keys=true)",
                            "(separators=(',', ':'))", "(indent='--')", "(4)", "(indent=none)", "(indent=0)")
        return f"{self.operand(depth, self.pick('dict', 'list', 'any', 'str', 'num'))}|tojson{options}"

    def join(self, depth):
        options = self.pick("", "(', ')", "('\\n')", f"({self.leaf('str')})", "('', attribute='role')", "(1)")
        return f"{self.operand(depth, 'list')}|join{options}"

    def text_filter(self, depth):
        name = self.pick("upper", "lower", "title", "capitalize", "trim", "trim", "string", "e", "escape", "safe", "forceescape",
                         f"trim({self.literal_string()})", f"replace({self.leaf('str')}, {self.leaf('str')})",
                         f"replace({self.literal_string()}, {self.literal_string()}, {self.pick('0', '1', '2')})",
                         "indent", "indent(2, true)", "indent(width=3, blank=true)", f"indent({self.literal_string()})",
                         "truncate(5)", "truncate(9, true)", "truncate(7, false, '…', 0)", "center(12)", "reverse", "urlencode",
                         "format", f"format({self.leaf('any')})", "first", "last", "length|string", "list|join('-')", "xmlattr",
                         "filesizeformat", "wordcount|string")
        return f"{self.operand(depth, self.pick('str', 'str', 'str', 'any', 'num'))}|{name}"

    def text_method(self, depth):
        name = self.pick("strip()", "lstrip()", "rstrip()", "upper()", "lower()", "title()", "capitalize()", "swapcase()",
                         "casefold()", f"strip({self.literal_string()})", f"rstrip({self.literal_string()})",
                         f"replace({self.leaf('str')}, {self.leaf('str')})", f"replace({self.literal_string()}, 'z', 1)",
                         f"split({self.literal_string()})[-1]", "split()[0]", "splitlines()|join('|')", "zfill(6)", "center(9, '*')",
                         "ljust(8)", "rjust(8, '.')", f"join({self.leaf('list')})", f"removeprefix({self.literal_string()})",
                         f"removesuffix({self.literal_string()})", f"partition({self.literal_string()})[2]",
                         f"rpartition({self.literal_string()})[0]", "expandtabs(4)", f"rsplit({self.literal_string()}, 1)[0]")
        return f"{self.operand(depth, 'str')}.{name}"

    def text_list_method(self, depth):
        name = self.pick("split()", f"split({self.literal_string()})", f"split({self.literal_string()}, 1)", "rsplit(none, 1)",
                         "splitlines()", "splitlines(true)", "partition(' ')", f"rsplit({self.literal_string()})",
                         "split(maxsplit=1)", "split(sep=' ')")
        return f"{self.operand(depth, 'str')}.{name}"

    def text_number_method(self, depth):
        name = self.pick("find", "rfind", "count", "index")
        bounds = self.pick("", "", ", 1", ", 0, 3", ", -2")
        return f"{self.operand(depth, 'str')}.{name}({self.literal_string()}{bounds})"

    def text_bool_method(self, depth):
        name = self.pick(f"startswith({self.literal_string()})", f"endswith({self.literal_string()})", "startswith(('a', 'h'))",
                         "isdigit()", "isalpha()", "isupper()", "islower()", "isspace()", "isalnum()", "istitle()", "isnumeric()",
                         "isdecimal()", "isascii()", "isidentifier()", "isprintable()", "startswith('l', 2)")
        return f"{self.operand(depth, 'str')}.{name}"

    def number_filter(self, depth):
        name = self.pick("round", "round(1)", "round(2, 'floor')", "round(1, 'ceil')", "round(-1)", "abs", "int", "float",
                         "int(7)", "float(1.5)", "default(3)", "round|int")
        return f"{self.operand(depth, self.pick('num', 'num', 'str'))}|{name}"

    def list_literal(self, depth):
        items = ", ".join(self.several(0, 3, lambda: self.expr(depth)))
        return self.pick(f"[{items}]", f"[{items}]", f"({items},)" if items else "()")

    def dict_literal(self, depth):
        key = lambda: self.pick(f"'{self.rng.choice(KEYS)}'", self.literal_string(), self.leaf("int"), "none", self.variable())
        return "{" + ", ".join(self.several(0, 3, lambda: f"{key()}: {self.expr(depth)}")) + "}"

    def list_filter(self, depth):
        name = self.pick("list", "sort", "sort(reverse=true)", "sort(attribute='role')", "sort(case_sensitive=true)", "list|sort",
                         "dictsort", "dictsort(by='value')", "dictsort(true)", "dictsort(reverse=true)", "groupby('role')",
                         "groupby('role', default='x')", "sort(attribute='role,content')", "unique|list", "reverse|list",
                         "batch(2)|list", "batch(2, 'fill')|list", "slice(2)|list", "slice(3, 0)|list", "items|list",
                         "map('upper')|list", "map(attribute='role')|list", "map(attribute='name', default='-')|list",
                         "select|list", "select('string')|list", "reject('none')|list", "selectattr('role')|list",
                         "selectattr('role', 'equalto', 'user')|list", "rejectattr('content', 'none')|list",
                         "selectattr('content', 'defined')|map(attribute='content')|list", "min", "max", "first", "last",
                         "map('default', 'x')|list", "map('tojson')|list", "map('length')|list", "map('trim')|join('/')",
                         "selectattr('tool_calls', 'defined')|list", "unique(attribute='role')|list", "sum(start=1)",
                         "map(attribute='function.name')|list", "selectattr('function.name', 'defined')|list",
                         "rejectattr('role', 'in', ['system', 'tool'])|map(attribute='content')|list", "sum(attribute='n')",
                         "map('replace', 'a', 'b')|list", "map(attribute='content')|select('string')|join", "groupby('type')|map('first')|list",
                         "map(attribute=0)|list", "select('in', ['a', 1])|list", "reject('mapping')|list", "slice(2, 'x')|map('list')|list")
        return f"{self.operand(depth, self.pick('list', 'list', 'dict'))}|{name}"

    def lazy(self, depth):
        """Generators: what they do when printed is of no interest, so they are used up here."""
        name = self.pick("map('upper')", "select('string')", "reject('odd')", "map(attribute='role')", "unique", "reverse",
                         "selectattr('role', 'in', ['user', 'tool'])", "batch(2)", "items", "selectattr('name')", "map('int')")
        use = self.pick("|list", "|first", "|join(',')", "|list|length", "|list|last", "|length", "|last", "|sum", "|sort",
                        " is iterable", " is sequence", " is string")
        return f"({self.operand(depth, self.pick('list', 'list', 'dict', 'any'))}|{name}{use})"

    def range(self, depth):
        return f"range({', '.join(self.several(1, 3, lambda: self.pick('0', '1', '3', '5', '-1', '2', self.leaf('int'))))})" \
            .replace("1000000", "9").replace("65536", "8")

    def percent(self, depth):
        if self.chance(10):
            form, arguments = self.pick("%s", "%s|%s", "%d", "%(a)s", "%r", "%c", "%z", "%", "%s %"), self.expr(depth)
        elif self.chance(50):
            form = self.pick("%d", "%5.1f", "%06.2f", "%x", "%+d", "%e", "%g", "%o", "%#x", "% d", "%E", "%G", "%X", "%i", "%-5d|", "%.3d")
            arguments = self.pick(self.leaf("num"), f"({self.leaf('num')},)")
            if form in ("%x", "%o", "%#x", "%X"):
                arguments = self.leaf("int")
        else:
            form = self.pick("%s", "%s|%s", "%-6s|", "%r", "%5s", "%.2s", "%s%%", "%a", "%10.3s", "%*s")
            count = 2 if form in ("%s|%s", "%*s") else 1
            first = "7" if form == "%*s" else self.expr(depth)
            arguments = f"({first}, {self.expr(depth)})" if count == 2 else f"({first},)"
        return f"('{form}' % {arguments})"

    def braces(self, depth):
        form = self.pick("{}", "{}-{}", "{0}{0}", "{:>8}", "{:<6}|", "{:^7}", "{:05d}", "{:.2f}", "{:,}", "{!r}", "{a}", "{0[a]}",
                         "{0.a}", "{:x}", "{:e}", "{:%}", "{:*^9}", "{{}}", "{" if self.chance(5) else "{!s}", "{0!s:>5}", "{:g}", "{:+}", "{:b}", "{:_}",
                         "{:#x}", "{:10}", "{:.3}", "{a[0]}", "{:08.3f}", "{:n}", "{0:{1}}", "{:-^5}", "{:c}", "{:s}")
        named = self.pick("", "", f", a={self.expr(depth)}")
        return f"'{form}'.format({self.expr(depth, self.pick('any', 'num', 'str'))}{named})"

    def call(self, depth):
        if self.macros and self.chance(60):
            name, parameters = self.rng.choice(self.macros)
            arguments = self.several(0, len(parameters) + (1 if self.chance(10) else 0), lambda: self.expr(depth))
            if parameters and self.chance(30):
                arguments = arguments[:1] + [f"{self.rng.choice(parameters)}={self.expr(depth)}"]
            if self.chance(5):
                arguments.append(f"*{self.expr(depth, 'list')}")
            return f"{name}({', '.join(arguments)})"
        if self.loops and self.chance(50):
            return self.pick("loop.cycle('x', 'y', 3)", "loop.index", "loop.revindex", "loop.length", "loop.previtem", "loop.nextitem",
                             f"loop.changed({self.leaf('any')})", "loop.last", "loop.depth", "loop.revindex0", "loop.nextitem.role",
                             "loop.previtem is defined", "loop.first")
        return self.pick("namespace(a=1).a", "joiner(', ')()", "cycler(1, 2).next()", "dict(a=2).a", "range(3)|list",
                         "table.get('a')", f"table.get({self.leaf('str')}, {self.leaf('any')})", "messages[0].get('role')",
                         "raise_exception('stop')" if self.chance(20) else "items.count(1)", "items.index(2)", "ns.a", "ns.missing", "ns._e", "ns.d", "ns['a']",
                         "strftime_now('%Y-%m-%d')", "strftime_now('%d %b %Y')", "strftime_now('%A, %B %d, %Y (%j, %y, %U, %%)')",
                         "table.update({'a': 1})" if self.chance(20) else "table.keys()|list", "items.append(1)" if self.chance(20) else "items|length",
                         "ns.c.append(1)" if self.chance(20) else "ns.c", "'{a} {b}'.format(**table)", "dict(table, z=1)", "dict(items)" if self.chance(30) else "dict",
                         "table.items()|list|first", "messages|map(attribute='role')|list", "word.split()|map('trim')|list", "namespace(**table).a",
                         "table.copy()", "table.pop('a')" if self.chance(30) else "'a'.join(['x', 'y'])", "word.nothing()")

    # -- statements

    def tag(self, text):
        if self.chance(4):
            text = text.replace(" ", "\n    ", 1) + "\n"
        return self.pick("{% ", "{%- ", "{%", "{%-", "{%+ ") + text + self.pick(" %}", " -%}", "%}", "-%}", " +%}")

    def output(self, depth):
        return self.pick("{{ ", "{{- ", "{{") + self.expr(depth) + self.pick(" }}", " -}}", "}}")

    def text(self):
        return self.pick("\n", " ", "\n  ", "text", "<|im_start|>", "a\n", "\n\n", "  x  ", "{# note #}", "{#- note -#}\n", "é",
                         "{% raw %}{{ raw }}{% endraw %}", "\t", "<s>[INST] ", "{" if self.chance(3) else "[", "}}", "# ", "{%- raw -%} r {%- endraw -%}\n")

    def body(self, depth):
        return "".join(self.several(1, 3, lambda: self.statement(depth)))

    def statement(self, depth):
        if depth <= 0:
            return self.pick(self.text(), self.output(1), self.output(2))
        return self.pick(self.text, self.text, lambda: self.output(3), lambda: self.output(2), lambda: self.if_(depth - 1),
                         lambda: self.if_(depth - 1), lambda: self.for_(depth - 1), lambda: self.for_(depth - 1), lambda: self.set(2),
                         lambda: self.set(2), lambda: self.set_block(depth - 1), lambda: self.macro(depth - 1),
                         lambda: self.namespace(), lambda: self.filter_block(depth - 1), lambda: self.with_(depth - 1),
                         lambda: self.call_block(depth - 1), lambda: self.generation(depth - 1), lambda: self.rare(depth - 1))()

    def if_(self, depth):
        text = self.tag(f"if {self.expr(2, 'bool')}") + self.body(depth)
        for _ in range(self.pick(0, 0, 1, 2)):
            text += self.tag(f"elif {self.expr(2, 'bool')}") + self.body(depth)
        if self.chance(40):
            text += self.tag("else") + self.body(depth)
        return text + self.tag("endif")

    def for_(self, depth):
        target = self.pick(self.name(), self.name(), "message", "key, value", "a, b", "(a, b)",
                           "a, (b, c)" if self.chance(20) else "msg")
        iterable = self.pick("messages", self.expr(2, "list"), "table.items()", "table|items", "items", "tools", "messages[1:]",
                             "messages|reverse", "table|dictsort", self.expr(1))
        test = f" if {self.expr(1, 'bool')}" if self.chance(20) else ""
        self.loops += 1
        inner = self.body(depth)
        if self.chance(15):
            inner += self.tag(f"if {self.expr(1, 'bool')}") + self.tag(self.pick("break", "continue")) + self.tag("endif")
            inner += self.body(0)
        self.loops -= 1
        otherwise = self.tag("else") + self.body(depth) if self.chance(15) else ""
        return self.tag(f"for {target} in {iterable}{test}") + inner + otherwise + self.tag("endfor")

    def set(self, depth):
        if self.chance(10):
            return self.tag(f"set {self.name()}, {self.name()} = {self.expr(depth)}, {self.expr(depth)}")
        return self.tag(f"set {self.name()} = {self.expr(depth)}")

    def namespace(self):
        if self.chance(50):
            return self.tag("set ns = namespace(a=0, b='', " + f"c={self.expr(1)})")
        return self.tag(f"set ns.{self.pick('a', 'b', 'c', 'd', '_e')} = {self.expr(2)}")

    def set_block(self, depth):
        filters = self.pick("", "", " | upper", " | trim | title", " | replace('a', 'b')")
        return self.tag(f"set {self.pick(self.name(), self.name(), 'ns.a')}{filters}") + self.body(depth) + self.tag("endset")

    def macro(self, depth):
        name = self.pick("show", "part", "wrap")
        parameters = self.rng.sample(["a", "b", "x", "caller"], self.rng.randint(0, 3))
        shown, defaults = [], False
        for parameter in parameters:
            defaults = defaults or self.chance(40)
            shown.append(f"{parameter}={self.expr(1)}" if defaults else parameter)
        loops, self.loops = self.loops, 0
        inner = self.body(depth) + self.pick("", "{{ varargs }}", "{{ kwargs }}", "{{ caller() }}", "{{ a }}", "{{ x }}")
        self.loops = loops
        if not self.chance(15):
            self.macros.append((name, parameters))
        return self.tag(f"macro {name}({', '.join(shown)})") + inner + self.tag("endmacro")

    def filter_block(self, depth):
        name = self.pick("upper", "trim", "replace('a', 'A')", "indent", "title|trim", "length", "tojson", "list")
        return self.tag(f"filter {name}") + self.body(depth) + self.tag("endfilter")

    def with_(self, depth):
        bindings = ", ".join(self.several(0, 2, lambda: f"{self.name()} = {self.expr(1)}"))
        return self.tag(f"with {bindings}") + self.body(depth) + self.tag("endwith")

    def call_block(self, depth):
        if not self.macros:
            return self.macro(depth)
        name, _ = self.rng.choice(self.macros)
        parameters = self.pick("", "", "(x)", "(a, b=1)")
        loops, self.loops = self.loops, 0
        inner = self.body(depth)
        self.loops = loops
        return self.tag(f"call{parameters} {name}({self.pick('', self.expr(1))})") + inner + self.tag("endcall")

    def generation(self, depth):
        loops, self.loops = self.loops, 0
        inner = self.body(depth)
        self.loops = loops
        return self.tag("generation") + inner + self.tag("endgeneration")

    def rare(self, depth):
        return self.pick(
            lambda: self.tag(f"print {self.expr(1)}, {self.expr(1)}"),
            lambda: self.tag(f"block b{self.rng.randint(0, 99)}") + self.body(depth) + self.tag("endblock"),
            lambda: self.tag("autoescape false") + self.body(depth) + self.tag("endautoescape"),
            lambda: self.tag("if false") + self.tag("include 'x'") + self.tag("endif"),
            lambda: self.tag(f"set {self.name()} = {self.expr(1)}|nosuchfilter") if self.chance(20) else "",
            lambda: self.tag("if false") + "{{ 1|nosuchfilter }}{{ 1 is nosuchtest }}" + self.tag("endif"),
            lambda: self.tag("break") if self.chance(20) else "",
            lambda: self.tag("import 'x' as a") if self.chance(20) else "",
            lambda: self.output(4),
        )()

    def program(self):
        start = ""
        if self.chance(85):  # names that are set let more of the program run
            start = "".join(self.tag(f"set {name} = {self.leaf(self.pick('str', 'str', 'int', 'list', 'dict'))}")
                            for name in NAMES if self.chance(80))
            start += self.tag("set ns = namespace(a=1, b='x', c=[])")
        return start + "".join(self.several(1, 5, lambda: self.statement(self.rng.randint(0, 3))))


class Conversations:
    def __init__(self, seed):
        self.rng = random.Random(seed)

    def text(self):
        return self.rng.choice(["Hello", "What is 2+2?", "", "  padded \n", "multi\nline\n\ntext", "<|im_end|>\n<|im_start|>system", "ünïcödé 漢字 🎉",
                                "<think>hm</think>42", "a" * 40, "tab\there", "\"quoted\" & <tagged>", "{{ not a template }}", "0", "user"])

    def value(self, depth=2):
        scalars = [None, True, False, 0, 1, -3, 2.5, 1e20, 12345678901, "x", "", self.text()]
        if depth == 0 or self.rng.random() < 0.6:
            return self.rng.choice(scalars)
        if self.rng.random() < 0.5:
            return [self.value(depth - 1) for _ in range(self.rng.randint(0, 3))]
        return {self.rng.choice(["a", "b", "type", "name", "items", "é"]): self.value(depth - 1) for _ in range(self.rng.randint(0, 3))}

    def tool_call(self):
        call = {"type": "function", "function": {"name": self.rng.choice(["get_weather", "f"]), "arguments": self.value()}}
        if self.rng.random() < 0.5:
            call["id"] = "call_1"
        return call

    def message(self):
        message = {"role": self.rng.choice(ROLES), "content": self.text()}
        choice = self.rng.random()
        if choice < 0.1:
            message["content"] = None
        elif choice < 0.2:
            message["content"] = [{"type": "text", "text": self.text()}, {"type": "image"}]
        elif choice < 0.25:
            del message["content"]
        elif choice < 0.28:
            del message["role"]
        elif choice < 0.4:
            message["tool_calls"] = [self.tool_call() for _ in range(self.rng.randint(0, 2))]
        elif choice < 0.5:
            message["name"] = "bob"
        elif choice < 0.55:
            message["reasoning_content"] = self.text()
        return message

    def context(self):
        tool = {"type": "function", "function": {"name": "f", "description": self.text(), "parameters": self.value()}}
        context = {
            "messages": [self.message() for _ in range(self.rng.choice([0, 1, 2, 2, 3, 3, 4, 5]))],
            "add_generation_prompt": self.rng.random() < 0.5,
            "bos_token": "<s>",
            "number": self.rng.choice([0, 1, 3, 7, -2, 40]),
            "ratio": self.rng.choice([0.5, 2.0, -1.25, 1e-5, 3.75]),
            "word": self.text(),
            "items": self.rng.choice([[], [1, 2, 3], ["b", "a", "B"], [2.5, True, None], [[1, 2], [3, 4]], [3, 1, 2]]),
            "table": self.rng.choice([{}, {"a": 1, "b": 2}, {"x": "y", "a": None, "items": [1]}, {"k%d" % i: i for i in range(12)}]),
            "nothing": None,
        }
        if self.rng.random() < 0.9:
            context["tools"] = self.rng.choice([None, [], [tool], [tool], [tool, tool]])
        return context
