// Slow: 3 s, each command is a process of its own
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { help, overview } from '../../src/cli/help.ts'
import { withColors, paintFor, withoutColors } from '../../src/cli/paint.ts'
import { folderWith } from '../support/command-line.ts'
import { startCommand } from '../support/command.ts'

const valid = `# yaml-language-server: $schema=gateway.schema.json
version: 1
external_url: https://orders.example.com
provider:
  issuer: https://id.example.com
  client_id: orders
  client_secret: { env: CLIENT_SECRET }
upstreams:
  orders:
    url: http://127.0.0.1:3000
    tests: [{ get: /, expect: sign_in }]
`

const env = { CLIENT_SECRET: 'correct horse battery' }

for (const [args, exitCode, out, err] of [
  [['check'], 0, /gateway\.yaml is valid; its test passes\.[^]*\/\.gatehouse\/callback/, /^$/],
  [['--config', 'gateway.yaml', 'check'], 0, /is valid/, /^$/],
  [['check', '-c', 'bad.yaml'], 1, /^$/, /bad\.yaml:2:1 {2}error[^]*bad\.yaml is invalid: \d+ errors/],
  [
    ['check', '-c', 'fails.yaml', '--format', 'github'],
    1,
    /^::error file=fails\.yaml,line=11,col=13,title=.*\n$/,
    /^$/,
  ],
  [
    ['check', '--format', 'xml'],
    2,
    /^$/,
    /^gatehouse: --format must be one of text, json, github\nFor help, run: gatehouse help check\n$/,
  ],
  [['check', 'gateway.yaml'], 2, /^$/, /unexpected argument: "gateway\.yaml"; name the file with --config FILE\n/],
  [['chekc'], 2, /^$/, /unknown command "chekc"; did you mean "check"\?/],
  [['constructor'], 2, /^$/, /unknown command "constructor"/],
  [['check', '-c', 'gateway.yaml', '--config', 'bad.yaml'], 2, /^$/, /--config is given twice\n/],
  [['check', '--fromat=json'], 2, /^$/, /unknown option --fromat; did you mean --format\?\n/],
  [['check', '--format'], 2, /^$/, /gatehouse: --format needs a value\n/],
  [
    ['sessions', 'list', '--sub', '--all'],
    2,
    /^$/,
    /--sub needs a value; write a value that begins with "-" as --sub=--all\n/,
  ],
  [['sessions', 'list', '--all=yes'], 2, /^$/, /--all takes no value\n/],
  [
    ['explain', 'localhost:8080/x'],
    2,
    /^$/,
    /is neither a URL nor a path; did you mean http:\/\/localhost:8080\/x \?\n/,
  ],
  [['explain', 'GET', 'orders/1'], 2, /^$/, /did you mean \/orders\/1 \?\n/],
  [
    ['explain', '--as', 'nofile', '/'],
    1,
    /^$/,
    /^gatehouse: nofile does not exist\. --as needs a JSON file of claims, such as /,
  ],
  [['explain', '--as', '/dev/zero', '/'], 1, /^$/, /^gatehouse: \/dev\/zero is larger than 1 MiB\. --as needs /],
  [['import', 'oauth2-proxy', '/dev/zero'], 1, /^$/, /^gatehouse: \/dev\/zero is larger than 1 MiB\n$/],
  [['import', 'oauth2proxy', 'x'], 2, /^$/, /unknown program "oauth2proxy"; did you mean "oauth2-proxy"\?\n/],
  [['import', 'nginx', 'x'], 2, /^$/, /unknown program "nginx"; known: oauth2-proxy, mod_auth_openidc, /],
  [['explain', '--as', '.', '/'], 1, /^$/, /^gatehouse: \. is a directory, not a file\. --as needs /],
  [['explain', '--log', 'nofile', 'x'], 1, /^$/, /^gatehouse: nofile does not exist\n$/],
  [['run', '--port', '1'], 2, /^$/, /--port.*; name the file with --config FILE/],
  [['schema'], 0, /^\{\n {2}"\$schema"[^]*\}\n$/, /^$/],
  [['schema', 'more'], 2, /^$/, /unexpected argument: "more"/],
  [['help', 'check'], 0, /^gatehouse check \[--config FILE\][^]*Exit codes: 0/, /^$/],
  [['check', '--help'], 0, /^gatehouse check/, /^$/],
  [['help', 'nonsense'], 2, /^$/, /unknown command "nonsense"/],
  [[], 0, /^gatehouse: an authentication gateway[^]*Exit codes: 0 success; 1 [^]*2 the call is invalid/, /^$/],
  [['--version'], 0, /^\d+\.\d+\.\d+\n$/, /^$/],
] as const)
  test(`gatehouse ${args.join(' ')} exits with ${exitCode}`, async (t) => {
    const files = {
      'gateway.yaml': valid,
      'bad.yaml': 'version: 1\nexternl_url: https://orders.example.com\n',
      'fails.yaml': valid.replace('expect: sign_in', 'expect: pass'),
    }

    const command = startCommand(t, args, { cwd: folderWith(t, files), env })

    assert.equal(await command.ended, exitCode)
    assert.match(command.out(), out)
    assert.match(command.err(), err)
    assert.doesNotMatch(command.out() + command.err(), /\u001b/, 'a pipe gets no colors')
  })

test('The overview lists every command, and every command has a help text with its exit codes', () => {
  const source = readFileSync(new URL('../../src/cli/main.ts', import.meta.url), 'utf8')
  const table = /const commands[^{]*\{([^}]*)\}/.exec(source)?.[1] ?? ''
  const names = [...table.matchAll(/^ {2}(\w+):/gm)].map(([, name = '']) => name)

  assert.ok(names.length >= 8)
  for (const name of names) assert.match(overview, new RegExp(`gatehouse ${name}\\b`), name)
  for (const name of names.filter((known) => known !== 'help' && known !== 'version')) {
    assert.match(help[name] ?? '', new RegExp(`^gatehouse ${name}\\b`), name)
    assert.match(help[name] ?? '', /^Exit codes: 0 [^]*;\s2 the call is invalid/m, name)
  }
})

test('Terminals get colors, unless NO_COLOR or TERM=dumb turns them off', () => {
  assert.equal(paintFor(true, {}), withColors)
  assert.equal(paintFor(true, { NO_COLOR: '' }), withColors)
  assert.equal(paintFor(true, { NO_COLOR: '1' }), withoutColors)
  assert.equal(paintFor(true, { TERM: 'dumb' }), withoutColors)
  assert.equal(paintFor(false, {}), withoutColors)
})
