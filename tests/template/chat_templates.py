"""Templates for test_chat_jinja.py: what those of models are made of, in templates of our own."""

TURNS = r"""{# roles between marks #}
{%- if messages[0]['role'] == 'system' -%}
    {%- set instructions = messages[0]['content'] | string | trim + '\n\n' -%}
    {%- set turns = messages[1:] -%}
{%- else -%}
    {%- set instructions = '' -%}
    {%- set turns = messages -%}
{%- endif -%}
{{ bos_token }}
{%- for turn in turns -%}
    {%- if (turn['role'] == 'user') != (loop.index0 % 2 == 0) and strict is defined -%}
        {{ raise_exception('Turns must alternate, found ' ~ turn.role) }}
    {%- endif -%}
    {%- set name = 'model' if turn.role == 'assistant' else turn.role -%}
    {{ '<turn>' + name + '\n' + (instructions if loop.first else '') }}
    {%- if turn['content'] is string -%}
        {{ turn['content'] | trim }}
    {%- elif turn['content'] is iterable -%}
        {%- for part in turn['content'] -%}
            {%- if part['type'] == 'text' -%}{{ part['text'] | trim }}{%- endif -%}
        {%- endfor -%}
    {%- endif -%}
    {{ '</turn>\n' }}
{%- endfor -%}
{%- if add_generation_prompt -%}{{ '<turn>model\n' }}{%- endif -%}
"""

LINES = """{% for m in messages %}
  {% if loop.first and m.role != 'system' %}
    {{ bos_token -}}
  {% endif %}
  {#- a comment -#}
  [{{ m.role|upper }}] {{ m.content }}
  {%+ if not loop.last %}, {% endif +%}
  {% raw %}{{ not this }} {% nor this %}{% endraw %}
{% else %}
nothing
{% endfor %}

tail   
"""

THINK = r"""{%- set ns = namespace(last=-1, seen=false, n=0) %}
{%- for m in messages[::-1] %}
    {%- set i = (messages|length - 1) - loop.index0 %}
    {%- if not ns.seen and m.role == 'user' and not (m.content is string and m.content.startswith('<tool>')) %}
        {%- set ns.seen = true %}{%- set ns.last = i %}
    {%- endif %}
{%- endfor %}
{%- for m in messages %}
    {%- set content = m.content if m.content is string else '' %}
    {%- if m.role == 'assistant' %}
        {%- set thoughts = '' %}
        {%- if m.thoughts is string %}
            {%- set thoughts = m.thoughts %}
        {%- elif '</think>' in content %}
            {%- set thoughts = content.split('</think>')[0].rstrip('\n').split('<think>')[-1].lstrip('\n') %}
            {%- set content = content.split('</think>')[-1].lstrip('\n') %}
        {%- endif %}
        {%- if loop.index0 > ns.last and (loop.last or (not loop.last and thoughts)) %}
            {{- '<|a|>\n<think>\n' ~ thoughts.strip('\n') ~ '\n</think>\n\n' ~ content }}
        {%- else %}
            {{- '<|a|>\n' ~ content }}
        {%- endif %}
        {%- if m.tool_calls %}
            {%- for call in m.tool_calls %}
                {%- if (loop.first and content) or (not loop.first) %}{{- '\n' }}{%- endif %}
                {%- if call.function %}{%- set call = call.function %}{%- endif %}
                {{- '{"name": "' }}{{- call.name }}{{- '", "arguments": ' }}
                {%- if call.arguments is string %}{{- call.arguments }}{%- else %}{{- call.arguments | tojson }}{%- endif %}
                {{- '}' }}
            {%- endfor %}
        {%- endif %}
        {{- '<|e|>\n' }}
    {%- elif m.role == "tool" %}
        {%- if loop.first or (messages[loop.index0 - 1].role != "tool") %}{{- '<|u|>' }}{%- endif %}
        {{- '\n<tool>\n' }}{{- content }}{{- '\n</tool>' }}
        {%- if loop.last or (messages[loop.index0 + 1].role != "tool") %}{{- '<|e|>\n' }}{%- endif %}
    {%- else %}
        {{- '<|' + m.role[0] + '|>' + content + '<|e|>' + '\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|a|>\n' }}
    {%- if thinking is defined and thinking is false %}{{- '<think>\n\n</think>\n\n' }}{%- endif %}
{%- endif %}
"""

TOOLS = r"""{%- macro kind(spec, depth=0) -%}
    {%- if spec.type == 'array' -%}
        {{- kind(spec['items'] if spec['items'] is defined else {'type': 'any'}, depth + 1) }}[]
    {%- elif spec.type is defined and spec.type is not string -%}
        {{- spec.type | join(' | ') }}
    {%- elif spec.enum is defined -%}
        {{- spec.enum | map('tojson') | join(' | ') }}
    {%- elif spec.type == 'object' and spec.properties -%}
        {{- '{' }}{% for k, v in spec.properties.items() %}{{ k }}{{ '?' if k not in (spec.required or []) }}: {{ kind(v, depth=depth + 1) }}{{ ', ' if not loop.last }}{% endfor %}{{- '}' }}
    {%- else -%}
        {{- spec.type | default('any', true) }}
    {%- endif -%}
{%- endmacro -%}
{%- macro shown(value, indent=4) %}{{ value | tojson(indent=indent) }}{% endmacro -%}
{%- if tools %}
{{- '# Tools (' ~ tools | length ~ ')\n' }}
{%- for tool in tools if tool.type == 'function' %}
    {%- set f = tool.function %}
    {{- '// ' + f.description | default('none') | replace('\n', ' ') + '\n' }}
    {{- 'type ' ~ f.name ~ ' = (' ~ kind(f.parameters) ~ ')\n' }}
    {%- for name, spec in f.parameters.properties | dictsort %}
        {{- '  ' ~ name ~ ': ' ~ (spec | items | list) ~ '\n' }}
    {%- endfor %}
    {{- shown(f.parameters, 2) | indent(2, true) }}
{%- endfor %}
{%- set needed = tools | map(attribute='function.parameters') | selectattr('required') | list %}
{{- '\n' ~ needed | length ~ ' need something; ' ~ (tools | selectattr('type', 'equalto', 'function') | list | length > 1) }}
{%- endif %}
{%- for m in messages | rejectattr('role', 'eq', 'system') %}
    {%- if m['tool_calls'] is defined and m['tool_calls'] is not none %}
        {%- set calls = m.tool_calls | map(attribute='function') | list %}
        {{- calls | tojson(sort_keys=true, separators=(',', ':')) ~ '|' ~ calls[0].get('missing', 'no') ~ '|' ~ calls[0].get('x') }}
    {%- elif m.role in ['user', 'assistant'] %}
        {{- m.role.title() ~ ': ' ~ m.content }}
    {%- endif %}
    {{- loop.cycle(' .', ' ;') ~ (loop.previtem.role if loop.previtem is defined else '-') ~ (loop.nextitem.role if loop.nextitem else '-') ~ loop.revindex ~ loop.revindex0 ~ loop.depth }}
{%- endfor %}
"""

LOOPS = r"""{% set outer = 'a' %}
{% for m in messages %}
{% set outer = outer ~ loop.index %}
{% if m.role == 'tool' %}{% continue %}{% endif %}
{% for c in (m.content if m.content is string else '')[:5] %}{% if c == ' ' %}{% break %}{% endif %}{{ c }}{{ loop.depth0 }}{% endfor %}
 {{ outer }}/{{ loop.length }}
{% if loop.index > 4 %}{% break %}{% endif %}
{% endfor %}
{{ outer }}
{% set block %}
  {% for i in range(3, 0, -1) %}{{ i }}{% endfor %}
  {%- set outer = 'inner' %}
{% endset %}
[{{ block }}{{ outer }}]
{% set up | upper | trim %} text {{ messages[0].role }} {% endset %}{{ up }}
{% filter replace('a', 'o') | capitalize %}banana {{ messages | length }}{% endfilter %}

{% with a = 1, b = 'x' %}{{ a }}{{ b }}{% endwith %}
{% set a, b = [1, 2] %}{{ a + b }}{% set t = 1, 'two' %}{{ t }}
{% macro m(a, b='d', c=a) %}{{ a }}-{{ b }}-{{ c }}-{{ outer }}{% endmacro %}{{ m(1) }}{{ m(2, c=3) }}{{ m(b=none, a='z') }}{{ m() }}
"""

GENERATION = r"""{% for m in messages %}
{{- '<|' ~ m.role ~ '|>' }}
{%- if m.role == 'assistant' %}{% generation %}{% set hidden = 1 %}{{ m.content }}<|end|>{% endgeneration %}{% else %}{{ m.content }}{% endif %}
{%- endfor %}{{ hidden is defined }}"""

DATES = r"""{{ strftime_now('%d %b %Y') }} {{ strftime_now("%Y-%m-%d, a %A of %B, day %j, %H:%M:%S") }}
{%- if strftime_now is defined %} known{% endif %}"""

# What is shown of values, with all that filters, tests, methods and operators do to them.
EXPRESSIONS = r"""messages
messages[-1]
messages[0].keys() | list
messages[0].values() | list | length
tools
[1, 2.5, 1e100, 1e16, 1e15, 0.0001, 0.00001, -0.0, 3.0, true, none, 'a\'b', "a'b", 'a"b\'c', '\t\n\\', 'é\x1f\u200b']
{'a': 1, 'b': [1, (2,), ()], 3: none, true: 'x'}
1 / 2 + 7 // 2 - -7 // 2 * 7 % 3 - -7 % 3 + 2 ** 3 ** 2
7.5 % 2 ~ -7.5 % 2 ~ 7.5 // -2 ~ 1 / 4
'a' 'b' ~ 1 ~ none ~ true ~ undefined_name ~ 2.0
not 1 == 2 and 'a' in 'abc' or 2 not in [1, 2]
1 < 2 < 3 == 3 != 4
[1, 2] < [1, 3] and 'a' < 'b'
'abcdef'[1:4] ~ 'abcdef'[::-2] ~ 'abcdef'[-3:] ~ 'äöü'[1] ~ 'abc'[5:]
[1, 2, 3, 4][::2] + [1, 2, 3][-2:-1] + [9][5:]
(1, 2)[0:1]
'x' * 3 ~ [1] * 2
'%s is %d%%' % ('a', 3) ~ '%s' % 'b'
'a-b-c'.split('-') ~ 'a b  c '.split() ~ 'a-b-c'.split('-', 1) ~ 'a b c'.split(none, 1) ~ 'a-b-c'.rsplit('-', 1)
' x '.strip() ~ '|' ~ 'xxaxx'.strip('x') ~ 'xya'.lstrip('yx') ~ 'a\n\n'.rstrip('\n') ~ '|'
'hello'.startswith('he') ~ 'hello'.endswith(('x', 'lo')) ~ 'hello'.find('l') ~ 'hello'.rfind('l') ~ 'hello'.count('l') ~ 'hello'.index('e')
'hello world'.title() ~ 'hELLO'.capitalize() ~ 'Hé'.upper() ~ 'ÉÖ'.lower() ~ "it's a-b (c)" | title
'a,b'.replace(',', ';') ~ 'aaa'.replace('a', 'b', 2) ~ 'abc'.replace('', '-')
'{}-{}'.format(1, 'x') ~ '{1}{0}{{}}'.format('a', 'b') ~ '{k}'.format(k=2)
', '.join(['a', 'b']) ~ 'prefix-x'.removeprefix('prefix-') ~ 'a\nb\r\nc'.splitlines()
'12'.isdigit() ~ ''.isdigit() ~ '1a'.isdigit()
{'a': 1}.get('a') ~ {'a': 1}.get('b') ~ {'a': 1}.get('b', 2) ~ {'b': 1, 'a': 2}.items() | list
[3, 1, 2] | sort ~ ['b', 'A', 'c'] | sort ~ ['b', 'A', 'c'] | sort(reverse=true, case_sensitive=true)
[{'n': 2}, {'n': 1}] | sort(attribute='n') | map(attribute='n') | join(',')
{'b': 1, 'A': 2} | dictsort ~ {'b': 1, 'a': 2} | dictsort(by='value') ~ {'b': 1, 'a': 2} | dictsort(reverse=true)
[1, 2, 3] | first ~ [1, 2, 3] | last ~ [] | first ~ 'abc' | first ~ 'abc' | last
[1, 2, 3] | sum ~ [1, 5, 2] | max ~ [4, 2] | min ~ -3 | abs ~ '12' | int ~ '1.5' | float ~ 'x' | int ~ 3.9 | int
['a', 'B', 'a', 'b'] | unique | list ~ [1, 2, 3] | reverse | list ~ 'abc' | reverse ~ 'ab' | list
[1, 2, 3, 4] | select('odd') | list ~ [1, 2, 3] | reject('eq', 2) | list ~ [0, 1, ''] | select | list
[{'a': 1}, {'a': 2}, {}] | selectattr('a', 'defined') | list ~ [{'a': 1}, {}] | map(attribute='a', default='z') | list
['a ', ' b'] | map('trim') | list ~ ['a'] | map('replace', 'a', 'b') | list
none | default('x') ~ none | default('x', true) ~ nope | default('y') ~ nope | d ~ '' | default('z', boolean=true)
'a\nb\n\nc' | indent ~ '|' ~ 'a\nb' | indent(2, first=true) ~ '|' ~ 'a\n\nb' | indent('--', blank=true)
messages | tojson
{'é': '"\\/\n\x01\u2028😀', 'n': 1.0, 'e': [], 'o': {}, 't': (1, true, none)} | tojson
{'é': '😀'} | tojson(ensure_ascii=true) ~ {'b': 1, 'a': [1, {}]} | tojson(indent=2) ~ [1] | tojson(indent=1, separators=(',', '='))
1 is odd ~ 2 is even ~ 4 is divisibleby 2 ~ 'a' is string ~ 1 is number ~ 1.0 is float ~ 1 is integer ~ true is integer ~ true is number ~ true is boolean
none is none ~ nope is defined ~ nope is not defined ~ [] is sequence ~ {} is mapping ~ 'a' is iterable ~ 1 is iterable ~ true is true ~ false is false
1 is eq 1 ~ 2 is gt(1) ~ 'a' is in ['a'] ~ 'a' is lower ~ 'A' is upper ~ range is callable
(nope is defined) if true else 'ok'
(nope or 'left') ~ (1 and 'right') ~ ('' or none)
none.x ~ [1, 2][7] ~ {}['x'] ~ {}.x ~ 'abc'.nothing ~ (1).x
[nope, 1] | length ~ nope | length ~ nope | list ~ nope | upper ~ nope | join
dict(a=1, b='x') ~ dict({'c': 2}, d=3)
range(5) | list ~ range(1, 10, 3) | list
'<a>' | safe ~ '<b>' ~ ('<a>' | safe + '<b>&"') ~ '<c>' | safe | upper
[[1, 2], [3]] | sum(start=[]) ~ [{'v': 2}] | sum(attribute='v')
messages[0]['role'] ~ messages[0].role ~ messages.0.role
(messages | map(attribute='role') | list).index('user') ~ messages | length // 2
1 if true ~ 2 if false ~ (3 if false)
1000000 * 1000000 ~ 1_000 ~ 1e3
'a' if 'x' is defined else 'b'
namespace(a=1).a ~ (namespace(a=1).b is defined)
"tab\tnew\nquote\"hex\x41\u00e9\101" ~ 'a\qb'
not none is none
-5 | abs
[1, 2] == [1, 2] ~ (1, 2) == [1, 2] ~ 1 == 1.0 ~ true == 1 ~ {'a': 1} == {'a': 1.0} ~ 'a' == none
""".strip().split("\n")

TEMPLATES = [TURNS, LINES, THINK, TOOLS, LOOPS, GENERATION, DATES]
TEMPLATES += ["{{ " + expression + " }}" for expression in EXPRESSIONS]
