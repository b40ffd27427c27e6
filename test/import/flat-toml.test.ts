import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readFlatToml } from '../../packages/import/common/flat-toml.ts'

test('Strings, numbers, booleans, lists and comments are read', () => {
  const options = readFlatToml(`
# a comment
basic = "with \\"quotes\\", a # and\ta tab" # behind it
literal = 'C:\\path'
number = 100
size = 0x10
since = 2026-11-26T21:50:00Z
text = """
two
lines"""
on=true
"Quoted-Name" = "named"
empty = []
list = ["a", 'b',   # one
  # two
  "c, d",
]
`)

  assert.deepEqual(Object.fromEntries(options), {
    basic: 'with "quotes", a # and\ta tab',
    literal: 'C:\\path',
    number: '100',
    size: '16',
    since: '2026-11-26T21:50:00.000Z',
    text: 'two\nlines',
    on: 'true',
    quoted_name: 'named',
    empty: [],
    list: ['a', 'b', 'c, d'],
  })
})

const flags = /write each flag as NAME = VALUE/

// The rows with advice are the regression "a note of import does not say what to decide".
for (const [what, text, line, advice = /^/] of [
  ['a table', 'a = 1\n[server]\n', 2],
  ['a table of an array', 'a = 1\n[[ "server" ]]\n', 2],
  ['a dotted name', 'a = 1\nserver.name = "secret"\n', 2],
  ['a table in a line', 'servers = []\nserver = { name = "secret" }\n', 2],
  ['a list in a list', 'a = ["secret", ["b"]]', 1],
  ['a string of several lines without an end', 'a = 1\nb = """\nsecret\n', 2],
  ['a name that an object of JavaScript has', 'a = 1\n__proto__ = "secret"\n', 2],
  ['a duration without quotes', 'a = 1\ncookie_expire = 168h\n', 2],
  ['a string without an end', '\n\na = "secret\n', 3],
  ['a list without an end, at its end', 'a = ["secret",\n', 2],
  ['a list without a comma', 'a = ["secret" "b"]', 1],
  ['no value', 'a =\n', 1],
  ['two values', 'a = "secret" "b"', 1],
  ['no equals sign', 'client_secret secret', 1],
  ['an invalid escape', 'a = "secret \\q"', 1],
  ['YAML', 'client_secret: secret', 1],
  ['flags', '--provider=oidc\n--oidc-issuer-url=secret\n', 1, flags],
  ['arguments of a container', '# args\n- --client-secret=secret\n', 2, flags],
  ['values of the Helm chart', 'config:\n  clientSecret: secret\n', 1, /the text of config\.configFile.*extraArgs/],
  ['the same option twice', 'a_b = "secret"\na-b = "secret"', 2],
] as const)
  test(`An invalid line is reported by number and not quoted: ${what}`, () => {
    assert.throws(
      () => readFlatToml(text),
      (error: Error) =>
        error instanceof SyntaxError &&
        !error.message.includes('secret') &&
        advice.test(error.message) &&
        /^line (\d+)/.exec(error.message)?.[1] === String(line),
    )
  })
