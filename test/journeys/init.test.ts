import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { stripVTControlCharacters } from 'node:util'
import { Browser } from '../support/browser.ts'
import { folderWith } from '../support/command-line.ts'
import { type Command, startCommand } from '../support/command.ts'
import { prepareGateway } from '../support/gateway-process.ts'
import { until } from '../support/until.ts'

test('The files of gatehouse init pass gatehouse check and work unchanged: people sign in, and the application gets the identity', async (t) => {
  const { url, provider, upstream, env } = await prepareGateway(t)
  const cwd = folderWith(t, {})
  const responses = ['--issuer', provider.issuer, '--client-id', 'orders', '--url', url, '--upstream', upstream.url]

  const init = startCommand(t, ['init', ...responses], { cwd })
  assert.equal(await init.ended, 0, init.err())
  const check = startCommand(t, ['check'], { cwd, env })
  assert.equal(await check.ended, 0, check.err())
  const run = startCommand(t, ['run'], { cwd, env })
  await run.said('gatehouse is ready')

  assert.equal((await new Browser('jane').get(url)).body, 'for jane')
})

test('On a real terminal, gatehouse init asks its five questions, and Ctrl+D leaves no file behind', async (t) => {
  const cwd = folderWith(t, {})
  const program = ['script', '-qec'] as const
  const command = `${process.execPath} ${join(import.meta.dirname, '../../dist/main.js')} init`

  // `script` (util-linux) is a terminal whose keys are its standard input.
  const asked = startCommand(t, [command, '/dev/null'], { cwd, program, keyboard: true })
  for (const [question, response] of [
    ['issuer', 'https://id.example.com'],
    ['client_id', 'orders'],
    ['browsers', 'https://orders.example.com'],
    ['URL of the application', 'http://127.0.0.1:3000'],
    ['stores sessions', ''],
  ] as const) {
    await until(`the question about ${question}`, () => isAsked(question, asked))
    asked.child.stdin?.write(`${response}\r`)
  }
  assert.equal(await asked.ended, 0, asked.out())
  assert.match(readFileSync(join(cwd, 'gateway.yaml'), 'utf8'), /client_id: orders/)

  const elsewhere = folderWith(t, {})
  const left = startCommand(t, [command, '/dev/null'], { cwd: elsewhere, program, keyboard: true })
  await until('the first question', () => isAsked('issuer', left))
  left.child.stdin?.write('\u0004')
  assert.equal(await left.ended, 1)
  assert.match(left.out(), /nothing was written/)
  assert.throws(() => readFileSync(join(elsewhere, 'gateway.yaml')), /ENOENT/)
})

function isAsked(question: string, { out }: Command): boolean {
  return new RegExp(`${question}[^]*> $`).test(stripVTControlCharacters(out()))
}
