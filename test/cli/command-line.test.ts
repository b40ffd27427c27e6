import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { help, overview } from '../../src/cli/help.ts'
import { inColours, paintFor, plainly } from '../../src/cli/paint.ts'
import { folderWith } from '../support/command-line.ts'
import { startCommand } from '../support/command.ts'

const good = `# yaml-language-server: $schema=gateway.schema.json
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
  [['check'], 0, /gateway\.yaml is good; its test passes\.[^]*\/\.gatehouse\/callback/, /^$/],
  [['--config', 'gateway.yaml', 'check'], 0, /is good/, /^$/],
  [['check', '-c', 'bad.yaml'], 1, /^$/, /bad\.yaml:2:1 {2}error[^]*bad\.yaml is not good: \d+ errors/],
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
    /^gatehouse: --format is one of text, json, github\n"gatehouse help check" says more\n$/,
  ],
  [['check', 'gateway.yaml'], 2, /^$/, /"gateway\.yaml" is too much/],
  [['chekc'], 2, /^$/, /there is no command "chekc"; did you mean "check"\?/],
  [['constructor'], 2, /^$/, /there is no command "constructor"/],
  [['check', '-c', 'gateway.yaml', '--config', 'bad.yaml'], 2, /^$/, /--config is given twice\n/],
  [['check', '--fromat=json'], 2, /^$/, /there is no option --fromat; did you mean --format\?\n/],
  [['check', '--format'], 2, /^$/, /gatehouse: --format wants a value\n/],
  [
    ['sessions', 'list', '--sub', '--all'],
    2,
    /^$/,
    /--sub wants a value; one that begins with "-" is written --sub=--all\n/,
  ],
  [['sessions', 'list', '--all=yes'], 2, /^$/, /--all takes no value\n/],
  [
    ['explain', 'localhost:8080/x'],
    2,
    /^$/,
    /is neither a URL nor a path; did you mean http:\/\/localhost:8080\/x \?\n/,
  ],
  [['explain', 'GET', 'orders/1'], 2, /^$/, /did you mean \/orders\/1 \?\n/],
  [['explain', '--as', 'nofile', '/'], 1, /^$/, /^gatehouse: nofile does not exist\n$/],
  [['explain', '--as', '/dev/zero', '/'], 1, /^$/, /^gatehouse: \/dev\/zero is larger than 1 MiB\n$/],
  [['import', 'oauth2-proxy', '/dev/zero'], 1, /^$/, /^gatehouse: \/dev\/zero is larger than 1 MiB\n$/],
  [['explain', '--as', '.', '/'], 1, /^$/, /^gatehouse: \. is a directory, not a file\n$/],
  [['explain', '--log', 'nofile', 'x'], 1, /^$/, /^gatehouse: nofile does not exist\n$/],
  [['run', '--port', '1'], 2, /^$/, /--port.*; a file is named with --config FILE/],
  [['schema'], 0, /^\{\n {2}"\$schema"[^]*\}\n$/, /^$/],
  [['schema', 'more'], 2, /^$/, /"more" is too much/],
  [['help', 'check'], 0, /^gatehouse check \[--config FILE\][^]*Exit codes: 0/, /^$/],
  [['check', '--help'], 0, /^gatehouse check/, /^$/],
  [['help', 'nonsense'], 2, /^$/, /there is no command "nonsense"/],
  [[], 0, /^gatehouse: an authentication gateway[^]*Exit codes: 0 all is well; 1 [^]*2 the call itself is wrong/, /^$/],
  [['--version'], 0, /^\d+\.\d+\.\d+\n$/, /^$/],
] as const)
  test(`gatehouse ${args.join(' ')} ends with ${exitCode}`, async (t) => {
    const files = {
      'gateway.yaml': good,
      'bad.yaml': 'version: 2\nexternl_url: https://orders.example.com\n',
      'fails.yaml': good.replace('expect: sign_in', 'expect: pass'),
    }

    const command = startCommand(t, args, { cwd: folderWith(t, files), env })

    assert.equal(await command.ended, exitCode)
    assert.match(command.out(), out)
    assert.match(command.err(), err)
    assert.doesNotMatch(command.out() + command.err(), /\u001b/, 'a pipe is no terminal')
  })

test('every command is in the overview, and says more about itself, its exit codes among it', () => {
  const source = readFileSync('src/cli/main.ts', 'utf8')
  const table = /const commands[^{]*\{([^}]*)\}/.exec(source)?.[1] ?? ''
  const names = [...table.matchAll(/^ {2}(\w+):/gm)].map(([, name = '']) => name)

  assert.ok(names.length >= 8)
  for (const name of names) assert.match(overview, new RegExp(`gatehouse ${name}\\b`), name)
  for (const name of names.filter((known) => known !== 'help' && known !== 'version')) {
    assert.match(help[name] ?? '', new RegExp(`^gatehouse ${name}\\b`), name)
    assert.match(help[name] ?? '', /^Exit codes: 0 [^]*;\s2 the call is wrong/m, name)
  }
})

test('colours are for terminals, and for nobody who asks for none', () => {
  assert.equal(paintFor(true, {}), inColours)
  assert.equal(paintFor(true, { NO_COLOR: '' }), inColours)
  assert.equal(paintFor(true, { NO_COLOR: '1' }), plainly)
  assert.equal(paintFor(true, { TERM: 'dumb' }), plainly)
  assert.equal(paintFor(false, {}), plainly)
})
