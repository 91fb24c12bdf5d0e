"""Every filter, test, method, operator and format on every kind of value, as one-line templates: most
combinations make no sense, and then both sides have to refuse."""
import itertools

CONTEXT = {
    "word": "Hello World", "l": [3, 1, 2], "d": {"b": 1, "a": 2, "C": 0, "None": 1}, "ll": [[3, "x"], [1, "y"], [1, "a"]], "e": "",
    "messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "x", "name": "N", "n": {"m": 1}}, {"role": "User", "content": None}],
    "n": 5, "f": 2.5, "nothing": None, "z": [{"k": 1}, {"k": 2}], "mix": ["b", "A", "a", "B", ""], "sl": ["a", "b"], "big": 123456789, "inf": 1e308,
    "s": " a\tb\nc\r\nd\u2028e\x1cf ", "uni": "ßİΑΣ ǆΣΣ. ﬁ É漢🎉", "html": "<a href='x'>\"&</a>",
}

VALUES = ["word", "l", "d", "e", "nothing", "n", "f", "true", "undef", "s", "uni", "html", "mix", "ll", "'42'", "'4.7'", "' 12 '", "'0x1f'", "'abc'",
          "messages", "d.keys()", "d.items()", "range(5)", "(1, 2)", "-7", "-2.5", "'nan'", "'inf'", "[]", "{}"]

FILTERS = """abs attr('x') batch(2)|list batch(2,0)|list batch(0)|list capitalize center center(3) count d d('x') d('x',true) default('x',boolean=true)
dictsort dictsort(true) dictsort(false,'value') dictsort(by='x') dictsort(reverse=true) e escape filesizeformat filesizeformat(true) first float float(1)
float('x') forceescape format format(1) format(a=1) groupby('role') groupby(0) groupby('role',case_sensitive=true) groupby('name',default='zz')
groupby('n.m') indent indent(2) indent(2,true) indent('>',true,true) indent(width=1,first=true) indent(true) indent(-1) int int(7) int(7,16) int(0,0)
int(base=2) join join('-') join(1) join('-','role') join(attribute='role') join(none) last length list lower items|list map('upper')|list
map(attribute='role')|list map('nosuch')|list map()|list map(attribute='role',default='x')|list map(attribute='role',x=1)|list map('replace','a','b')|list
map('default','q')|list map(attribute='n.m')|list map(attribute=0)|list map('int')|list min max min(attribute='role') max(true) max(case_sensitive=true)
reject|list reject('odd')|list rejectattr('name')|list rejectattr('role','eq','user')|list replace('a','b') replace('','-') replace('l','L',1)
replace('l','L',count=2) replace('o',1) replace(1,2) replace('a') reverse|list reverse|first round round(1) round(-1) round(2,'ceil') round(0,'floor')
round(1,'x') round(method='ceil') safe select|list select('odd')|list select('nosuch')|list select('in',[1,2])|list selectattr('name')|list
selectattr('role','eq','user')|list selectattr('role','in',['user'])|list selectattr('content','none')|list selectattr()|list
selectattr('n.m','defined')|list slice(2)|list slice(2,'x')|list slice(0)|list slice(10)|list sort sort(true) sort(false,true) sort(attribute='role')
sort(attribute='role,content') sort(attribute=0) sort(attribute='1,0') sort(case_sensitive=true) string sum sum(start=10) sum('k') sum(attribute='k')
sum(start='') sum(start=[]) title trim trim('a') trim(none) truncate truncate(5) truncate(5,true) truncate(3,false,'...',0) truncate(2)
truncate(5,false,'',0) truncate(8,leeway=0) truncate(length=4,killwords=true,end='') unique|list unique(true)|list unique(attribute='role')|list upper
urlencode wordcount xmlattr xmlattr(false) tojson tojson(4) tojson(indent=2) tojson(indent='\\t') tojson(ensure_ascii=true) tojson(sort_keys=true)
tojson(separators=(',',':')) tojson(separators=[',',':'],indent=1) tojson(separators=1) tojson(indent=true) tojson(indent=1.5) tojson(indent=-1) nosuch
upper(1) length(1) length(x=1) first(1)""".split()

TESTS = """boolean callable defined escaped even false filter float integer iterable lower mapping none number odd sequence string test true undefined
upper divisibleby(2) divisibleby(0) sameas(none) sameas(5) in([5,'a']) in('Hello') in(5) eq(5) ne(5) gt(3) lt('x') ge(5) le(2.5) equalto('')
greaterthan(1) lessthan(9) defined(1) divisibleby nosuch""".split()

TEXTS = ["word", "s", "uni", "html", "e", "'abcabc'", "'12'", "'-5'", "'a,b,,c'", "'xxaxx'", "'Title Case'", "html|safe"]

METHODS = """capitalize() casefold() center(20) center(20,'*') center(20,'ab') center() count('a') count('') count('a',1) count('a',1,3) count('b',-3,-1)
count(1) endswith('c') endswith(('d','c')) endswith(['d']) endswith('',100) endswith('b',0,2) expandtabs() expandtabs(4) expandtabs(0)
expandtabs(tabsize=2) find('a') find('a',1) find('',100) find('c',-2) find('z') find(1) format() index('a') index('z') isalnum() isalpha() isascii()
isdecimal() isdigit() isidentifier() islower() isnumeric() isprintable() isspace() istitle() isupper() join(sl) join('xyz') join([1]) join(d) join()
ljust(15) ljust(15,'.') lower() lstrip() lstrip('Hxa') partition(',') partition('') partition('a') removeprefix('Hel') removesuffix('c')
removeprefix('') replace('a','b') replace('a','b',1) replace('','-') replace('','-',2) replace('a','b',-1) replace('a') replace('a','b',none) rfind('a')
rfind('a',0,2) rindex('a') rindex('z') rjust(15) rpartition(',') rpartition('z') rsplit() rsplit(',') rsplit(',',1) rsplit(none,1) rsplit(maxsplit=1)
rstrip() rstrip('cx') split() split(',') split(',',1) split(none,1) split(sep=',') split('') split(',',-1) split(1) split(',',none) splitlines()
splitlines(true) splitlines(keepends=true) startswith('H') startswith('a',1) startswith(('x','a')) startswith(()) strip() strip('a') strip('xa')
strip(none) strip(1) swapcase() title() upper() zfill(8) zfill(0) upper(1) nosuch() append(1) __len__() format_map(d) lower().upper().strip()[0:2]""".split()

OBJECTS = ["l", "(1,2,1)", "d", "range(5)", "n", "f", "true", "d.keys()", "nothing", "undef", "namespace(a=1)", "sl"]
OBJECT_METHODS = """copy() count(1) index(1) index(9) index(1,1) index(1,0,2) append(1) pop() sort() reverse() extend([]) get('a') get('zz') get('zz',7)
get() get(1,2,3) get([1]) items() keys() values() items()|list keys()|list|length update({}) setdefault('a') clear() popitem() fromkeys('ab')
fromkeys([1,2],0) start stop step real imag numerator denominator is_integer() bit_length() conjugate() a b __class__ __init__ _a __foo__""".split()

OPERANDS = ["word", "l", "d", "e", "nothing", "n", "f", "true", "undef", "'a'", "(1,2)", "range(3)", "0", "3", "0.0", "[]", "{}", "'%s'", "html|safe",
            "namespace()", "d.values()"]
OPERATORS = ["+", "-", "*", "/", "//", "%", "**", "~", "==", "!=", "<", "<=", ">", ">=", "in", "not in", "and", "or"]

PERCENTS = """%s %d %5d| %-5d| %05d %+d %x %X %#x %o %#o %i %u %f %.2f %8.3f| %-8.2f| %08.2f %+.1f %e %.3e %E %g %G %#g %.3g %c %r %a %5s| %-5s| %.1s %%
%5% %(a)s %(a)d%(b)s %(zz)s % %z %s%s %ld %.0f %*d %-*d| %.*f %5c| %(a %()s %5.3d %+5d %-+5d| %#.3x %#08x""".split() + ["% d", "% 5d"]
PERCENT_VALUES = ["5", "-5", "2.5", "-0.0", "1e-5", "'a'", "'abc'", "true", "none", "undef", "l", "d", "(1,2)", "(3,4.5)", "(65,)", "()", "0", "uni", "big",
                  "123456789012", "0.5", "1.5", "html", "(5,2.5)"]

SPECS = """5 <5 ^5 ^6 >5 =5 *^7 05 + - # x X b o c d n e E f F g G % s .2 .2f .0f 10.3f <10.3f ^10.2e , _ ,.2f _x _b 08, 015, 015,.2f +, #x #b #o #010x é^5
1. z ,, ,_ ._ 5.1 010 -10 +10.1 *=+10 >+8 c>5 =^5 <<5 00005 #.3g .10 5s <5s .1s 05s =5s t 5x5 .3% 020.3% #_b ^#12b""".split() + ["", " "]
SPEC_VALUES = ["5", "-5", "2.5", "-1234567.891", "1e20", "1e-7", "'abc'", "true", "none", "l", "undef", "big", "0", "uni", "0.0", "inf*10", "1234567", "100.0"]

FIELDS = """{} {}{} {0}{1}{0} {a} {2[0]} {3[a]} {3.a} {k[b]} {k.b} {9} {zz} {}{0} {0}{} { } {{ }} {{}} {{{0}}} {!r} {1!r} {1!s:>4} {1!a} {1!x} {1!} {1!rr} {:{w}}
{1:{w}}| {1:>{w}}| {1:{0}}| {1:{}} {:{}} {2[5]} {2[a]} {2[-1]} {3[zz]} {3.zz} {3.zz.y} {0.__class__} {a[0]} {a[0][0]} {a[} {a.} {.a} {[0]} {a!r:^9} {0:} {0!r:}
{:{w}.{w}} {2} {3} {a:{k[b]}}| {w:{w}{w}} {a\\n} {:{:{}}}""".split()

MARKUP = """(html|safe).format('<') ('<b>{}</b>'|safe).format('<i>') ('<b>%s</b>'|safe)%'<i>' ('<b>%s</b>'|safe)%('<i>',) ('<b>%(a)s</b>'|safe)%{'a':'<'}
'<x>'+(html|safe) (html|safe)*2 (html|safe)~'<' ('-'|safe).join(['<',html|safe]) [html|safe] (html|safe)|replace('<','{') (html|safe).replace('a','<')
(html|safe)|upper+'<' html|safe|string+'<' html|e|e html|e|forceescape (html|safe)[1:3]+'<' (html|safe)|trim+'<' (html|safe)|length (html|safe)==html
{html|safe:1}[html] [html|e]|join (html|safe)|tojson html|safe|indent+'<' (html|safe)|title+'<' (html|safe)|reverse+'<' (html|safe)|first+'<'
(html|safe)|truncate(3,true,'<',0) (html|safe)|center(30)+'<' ('%s'|safe)|format('<') 5|safe+'<' (html|safe).split('a')[0]+'<' (html|safe).ljust(20,'<')
(html|safe).strip()+'<'""".split()


def whitespace():
    for a, b in itertools.product(["{%", "{%-", "{%+"], ["%}", "-%}", "+%}"]):
        for before, after in itertools.product(["a", "a \n  ", "\n\n  ", "  ", "a  ", "x\n\t"], ["b", "\nb", "  \n b", "\n\n"]):
            yield f"{before}{a} if true {b}{after}{a} endif {b}{after}"
            yield f"{before}{a.replace('%', '#')} c {b.replace('%', '#')}{after}"
    for a, b, before, after in itertools.product(["{{", "{{-", "{{+"], ["}}", "-}}"], ["a", "a \n  ", "  "], ["b", "\nb", "  \n b"]):
        yield f"{before}{a} 1 {b}{after}"
    for a, b, c, d in itertools.product(["{%", "{%-", "{%+"], ["%}", "-%}"], ["{%", "{%-", "{%+"], ["%}", "-%}", "+%}"]):
        yield f"x \n  {a} raw {b} \n {{{{ y }}}} \n {c} endraw {d} \n z"
        yield f"{a}raw{b}\n  {c}endraw{d}\nz"


SYNTAX = [
    "{#", "{#-", "a{#", "{% raw %}", "{% raw %}x", "{{", "{%", "{{ 1", "{% if", "{# x", "{#}", "{#-#}", "{#+#}x", "{##}", "{{}}", "{% %}", "{%}", "}}", "%}",
    "{{'}}'}}", "{{ '%}' }}", "{% if '%}' %}x{% endif %}", "{{ {'a':{'b':1}}['a']['b'] }}", "{{ {'a':{}}}}", "{{ [1,2}", "{{ (1] }}", "{{ a) }}", "\n",
    "\r\n", "a\r\nb\rc\n\n", "{{ 'a\nb' }}", "{{ 'a\r\nb' }}", "{{ \"a\\'b\" }}", "{{ '\\x41\\u00e9\\U0001F389\\101\\q\\é\\\n' }}", "{{ '\\x4' }}", "{{ '\\u12' }}",
    "{{ 'a' 'b' \"c\" }}", "{{ 1_000 }} {{ 0x1F }} {{ 0b101 }} {{ 0o17 }} {{ 1e3 }} {{ 1.5e-3 }} {{ 1_0.5 }} {{ 00 }}", "{{ 07 }}", "{{ 1.}}", "{{ .5 }}",
    "{{ 1__0 }}", "{{ 0x }}", "{{ 1e }}", "{{ 5.real }}", "{{ 5 .real }}", "{{ l.0 }}{{ l.1 }}", "{{ z.0.k }}", "{{ l.0.5 }}", "{{ é }}", "{{ ² }}", "{{ a$b }}",
    "{{ a ! b }}", "{{ a != 1 }}", "{{ a; b }}", "{{ 1,2 }}", "{{ 1, }}", "{{ (1,) }}", "{{ () }}", "{{ [1,] }}", "{{ {1:2,} }}", "{{ [,] }}", "{{ f(,) }}",
    "{{ dict(a=1,) }}", "{{ dict(a=1, a=2) }}", "{{ dict(**{'a': 1}) }}", "{{ dict(*[[('a', 1)]]) }}", "{{ dict(b=1, *[]) }}", "{{ dict(**d, x=1) }}",
    "{{ -1|abs }} {{ -n|abs }} {{ - -1 }} {{ +1 }} {{ -l[0] }} {{ -2**2 }} {{ 2**3**2 }} {{ 2**-1 }} {{ not 1 == 2 }} {{ not not 1 }}",
    "{{ 1 if 0 }}|{{ 1 if 1 else 2 if 0 else 3 }}|{{ 1 if 0 else 2 if 0 else 3 }}|{{ (1 if 0) is undefined }}", "{{ 'a' if 1 if 0 else 'b' }}",
    "{{ 1 is odd }} {{ 1 is not odd }} {{ not 1 is odd }}", "{{ 1 is odd is odd }}", "{{ 4 is divisibleby 2 }} {{ 1 is in [1,2] }} {{ 'a' is eq 'a' }}",
    "{{ x is defined if y }}", "{{ 1 < 2 < 3 }} {{ 1 < 2 > 1 == 1 }} {{ 1 in [1] in [[1]] }} {{ 1 not in [2] }}", "{{ 1 + 2 ~ 3 }} {{ 1 ~ 2 + 3 }}",
    "{{ l[1:] }} {{ l[::-1] }} {{ l[1:2:] }} {{ word[-1] }} {{ word[100] }} {{ l[true] }} {{ l['0'] }} {{ l[1.0] }}", "{{ l[1,2] }}", "{{ l[] }}",
    "{{ l[1:2,3] }}", "{{ d[[1]] }}", "{% set a, b = 1, 2 %}{{ a }}{{ b }}{% set (c, d) = l[:2] %}{{ c }}{{ d }}{% set a, b = b, a %}{{ a }}{{ b }}",
    "{% set a.b = 1 %}", "{% set a[0] = 1 %}", "{% set 'a' = 1 %}", "{% set true = 1 %}", "{% set a, = [1] %}{{ a }}", "{% set a %}", "{% set a = %}",
    "{% set ns = namespace() %}{% set ns.x, y = 1, 2 %}{{ ns.x }}{{ y }}", "{% set ns = namespace() %}{% set ns._x = 1 %}", "{{ namespace(_x=1) }}",
    "{{ namespace({'a':1}, b=2) }}", "{{ namespace([('a',1)]).a }}", "{{ namespace(1) }}", "{% set ns = namespace() %}{% set ns.me = ns %}{{ ns }}",
    "{% do x %}", "{% trans %}", "{% endif %}", "{% if 1 %}", "{% for %}", "{% macro m %}", "{% macro m(a, a) %}{% endmacro %}", "{% macro m(a=1, b) %}{% endmacro %}",
    "{{ cycler() }}", "{% set c = cycler(1, 2) %}{{ c.next() }}{{ c.next() }}{{ c.current }}{{ c.next() }}{{ c.reset() }}{{ c.current }}",
    "{% set j = joiner() %}{{ j() }}{{ j() }}{{ j() }}", "{{ joiner('x', 1) }}", "{{ range() }}", "{{ range(1, 2, 3, 4) }}", "{{ range(100001) }}",
    "{{ range('a') }}", "{{ range(10**18) }}", "{{ dict.fromkeys('ab', 1) }}", "{{ dict(1) }}", "{{ dict([1]) }}", "{{ raise_exception() }}",
    "{{ strftime_now('%Y-%m-%d %b %j %% %q') }}", "{{ strftime_now(1) }}", "{% include 'x' %}", "{% extends 'x' %}", "{% import 'x' as y %}",
    "{% from 'x' import y %}", "{% from 'x' import _y %}", "{% if 0 %}{% include 'x' ignore missing with context %}{% endif %}ok",
    "{% for x in l %}{% extends 'x' %}{% endfor %}", "{% block a %}{{ word }}{% endblock a %}{% set q = 1 %}{% block b %}{{ q }}{% endblock %}",
    "{% block a %}{% endblock %}{% block a %}{% endblock %}", "{% block a required %}{% endblock %}", "{% autoescape false %}{{ html }}{% endautoescape %}",
    "{{ messages[0].items() }}", "{{ messages[0]['get']('role') }}", "{{ word['upper']() }}", "{{ l.append(1) }}",
    "{{ l.append }}|{{ d.update is defined }}|{{ word.__class__ }}|{{ d.__len__ }}", "{{ word.__class__.mro() }}", "{{ ''.__class__.__subclasses__() }}",
    "{{ (word|attr('upper'))() }}", "{{ word|attr('__class__') }}", "{{ d|attr('a') }}", "{{ '{0.__class__.__mro__}'.format(word) }}",
]

SCOPES = [
    "{% for x in l %}{% set y = x %}{% endfor %}{{ y }}", "{% set y = 0 %}{% for x in l %}{{ y }}{% set y = x %}{{ y }}{% endfor %}{{ y }}",
    "{% if true %}{% set y = 1 %}{% endif %}{{ y }}", "{% for x in l %}{% if x == 1 %}{% set w = 5 %}{% endif %}{{ w }}{% endfor %}",
    "{{ n }}{% set n = 6 %}{{ n }}", "{% for x in [1] %}{{ n }}{% endfor %}{% set n = 6 %}{% for x in [1] %}{{ n }}{% endfor %}",
    "{% macro m() %}{{ q }}{% endmacro %}{% set q = 1 %}{{ m() }}", "{% for x in [1,2] %}{% macro m() %}{{ x }}{% endmacro %}{{ m() }}{% endfor %}{{ m is defined }}",
    "{% with %}{% set a = 1 %}{% endwith %}{{ a }}", "{% set a = 1 %}{% with a = 2, b = a %}{{ a }}{{ b }}{% endwith %}{{ a }}",
    "{% set x %}{% set y = 2 %}{{ y }}{% endset %}{{ x }}{{ y }}", "{% filter upper %}{% set y = 'a' %}{{ y }}{% endfilter %}{{ y }}",
    "{% for x in l %}{% for x in [9] %}{{ x }}{% endfor %}{{ x }}{% endfor %}{{ x }}", "{% set x | replace(qq, 'b') %}a{% endset %}{{ x }}",
    "{% for i in l %}{{ loop.index }}{% for j in l %}{{ loop.index }}{% endfor %}{{ loop.index }}{% endfor %}", "{% for i in l %}{% set loop = 1 %}{% endfor %}",
    "{% for loop in l %}{% endfor %}", "{{ loop }}", "{% for i in l %}{% else %}{{ loop }}{% endfor %}", "{% for i in l if loop.index %}{% endfor %}",
    "{% for i in [] %}{% else %}e{% endfor %}", "{% for i in l %}{% break %}{% else %}e{% endfor %}", "{% for i in l %}{% continue %}{% else %}e{% endfor %}",
    "{% for i in l %}{% if i == 1 %}{% continue %}{% endif %}{{ i }}{% else %}e{% endfor %}", "{% break %}", "{% for i in l %}{% else %}{% break %}{% endfor %}",
    "{% for i in l %}{% macro m() %}{% break %}{% endmacro %}{% endfor %}", "{% for i in l %}{% filter upper %}a{% break %}{% endfilter %}{% endfor %}",
    "{% for i in l %}{% set x %}a{% continue %}{% endset %}{% endfor %}{{ x }}", "{% for i in l %}{% with %}{% break %}{% endwith %}{% endfor %}",
    "{% for i in l %}{% generation %}{% break %}{% endgeneration %}{% endfor %}", "{% for i in l|reverse %}{{ loop.length }}{{ loop.last }}{% endfor %}",
    "{% for i in l %}{{ loop.previtem }}{{ loop.nextitem }}{{ loop.first }}{{ loop.last }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.length }}{{ loop.depth }}"
    "{{ loop.depth0 }}{{ loop.cycle('a','b') }}{{ loop.changed(i > 1) }}{{ loop }};{% endfor %}", "{% for i in l %}{{ loop.foo }}{% endfor %}",
    "{% for i in l|map('string') %}{{ loop.last }}{{ loop.length }}{{ loop.nextitem }}{% endfor %}", "{% for i in l %}{{ loop(l) }}{% endfor %}",
    "{% for i in l %}{{ loop.cycle() }}{% endfor %}", "{% for a, b in [[1,2],[3,4]] %}{{ a }}{{ b }}{% endfor %}", "{% for a, b in [1] %}{% endfor %}",
    "{% for a, (b, c) in [(1,(2,3))] %}{{ a }}{{ b }}{{ c }}{% endfor %}", "{% for a in d %}{{ a }}{% endfor %}{% for a in word %}{{ a }},{% endfor %}",
    "{% for a in 5 %}{% endfor %}", "{% for a in undef %}{% else %}none{% endfor %}", "{% for a in l: %}{{ a }}{% endfor %}", "{% for a in 1, 2 %}{{ a }}{% endfor %}",
    "{% for a in l if a > 1 if a < 3 %}{% endfor %}", "{% for a in (l if true else []) %}{{ a }}{% endfor %}", "{% for a in l if true else [] %}{{ a }}{% endfor %}",
    "{% set g = l|map('string') %}{{ g|list }}{{ g|list }}{{ 'yes' if g }}", "{% set ns = namespace(m=1) %}{% for i in l if i > ns.m %}{{ i }}{% set ns.m = 2 %}{% endfor %}",
    "{% macro m(a, b=a) %}{{ a }}{{ b }}{% endmacro %}{{ m(1) }}{{ m() }}{{ m(b=2) }}{{ m(1, 2, 3) }}", "{% macro m(a=b, b=1) %}{{ a }}{{ b }}{% endmacro %}{{ m() }}",
    "{% macro m() %}{{ caller() }}{% endmacro %}{{ m() }}", "{% macro m() %}x{% endmacro %}{% call m() %}y{% endcall %}", "{% call m %}{% endcall %}",
    "{% macro m(caller) %}{{ caller() }}{% endmacro %}", "{% macro m(caller=none) %}{{ caller }}{% endmacro %}{{ m() }}", "{{ m() }}{% macro m() %}{% endmacro %}",
    "{% macro f(n) %}{{ n }}{% if n > 0 %}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(20) }}", "{% macro m(a, b=2) %}{% endmacro %}{{ m }}{{ m.name }}{{ m.arguments }}",
    "{% macro m() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, *[2, 3], a=4, **{'b': 5}) }}", "{% call(a, b=1) word.upper() %}{% endcall %}",
    "{% macro m() %}[{{ caller(1, b=2) }}]{% endmacro %}{% call(a, b=1) m() %}{{ a }}{{ b }}{% endcall %}", "{% filter length %}abc{% endfilter %}",
    "{% filter upper|replace('A', 'b') %}a{{ word }}{% endfilter %}", "{% set x | length %}abc{% endset %}{{ x + 1 }}", "{% print 1, 'a' %}{% print %}",
]


def cases():
    yield from whitespace()
    yield from SYNTAX
    yield from SCOPES
    yield from (f"{{{{ ({value})|{name} }}}}" for value in VALUES for name in FILTERS)
    yield from (f"{{{{ ({value}) is {name} }}}}" for value in VALUES for name in TESTS)
    yield from (f"{{{{ ({value}).{name} }}}}" for value in TEXTS for name in METHODS)
    yield from (f"{{{{ ({value}).{name} }}}}" for value in OBJECTS for name in OBJECT_METHODS)
    yield from (f"{{{{ ({a}) {op} ({b}) }}}}" for a in OPERANDS for op in OPERATORS for b in OPERANDS)
    yield from (f"{{{{ {op}({a}) }}}}" for a in OPERANDS for op in ("-", "+", "not "))
    yield from (f"{{{{ '{form}' % {value} }}}}" for form in PERCENTS for value in PERCENT_VALUES)
    yield from (f"{{{{ '{form}'|format({values}) }}}}" for form in ("%s", "%d", "%(a)s") for values in ("1", "1,2", "a=1", "a=1,b=2", "1,a=2", ""))
    yield from (f"{{{{ '{{:{spec}}}'.format({value}) }}}}" for spec in SPECS for value in SPEC_VALUES)
    yield from (f"{{{{ '{form}'.format(1, 'b', l, d, a='x', k=d, w=5) }}}}" for form in FIELDS)
    yield from (f"{{{{ {expression} }}}}" for expression in MARKUP)
