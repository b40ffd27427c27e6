// Slow: 2 s, each step of the page is a process of its own
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { Browser } from '../support/browser.ts'
import { folderWith } from '../support/command-line.ts'
import { startCommand } from '../support/command.ts'
import { freePort } from '../support/free-port.ts'
import { gatehouseWith } from '../support/pauses.ts'
import { startProvider } from '../support/provider.ts'
import { until } from '../support/until.ts'
import { blocksOf, pages } from './markdown.ts'

// Follows the page step by step, with ports and a provider of the test. `UPDATE=1` updates the
// output on the page.
const page = pages.find(({ path }) => path === 'docs/first-application.md') as (typeof pages)[number]
const blocks = blocksOf(page)
const [toys = '', own = '', ruled = ''] = blocks.filter(({ language }) => language === 'yaml').map(({ text }) => text)
const shell = blocks.filter(({ language }) => language === 'sh').map(({ text }) => text)
const env = { CLIENT_SECRET: 'any-text-will-do-for-the-demo', NO_COLOR: '1' }

/** A text of the page, with free ports. */
async function ported(text: string, ports: Map<string, number>): Promise<string> {
  for (const port of ['8080', '8081', '8082', '3000'])
    if (text.includes(port) && !ports.has(port)) ports.set(port, await freePort())
  return text.replaceAll(/\b(?:8080|8081|8082|3000)\b/g, (port) => String(ports.get(port)))
}

/** Starts the command of a shell block: the one after `npm run -s gatehouse --`. */
function commandIn(text: string): string[] {
  const [, command = ''] = /^npm run -s gatehouse -- (.*)$/m.exec(text) ?? []
  return command.split(' ')
}

test('Step 1: the file runs between a demo provider and a demo application, which gets the headers', async (t) => {
  const ports = new Map<string, number>()
  const cwd = folderWith(t, { 'gateway.yaml': await ported(toys, ports) })
  const demo = startCommand(t, commandIn(shell[0] ?? ''), { cwd, env })
  await demo.prints('Gatehouse is running')

  const visit = await new Browser('jane').get(`http://localhost:${ports.get('8080')}/`)

  assert.equal(visit.status, 200)
  assert.match(visit.body, /x-remote-user[^]*jane/i)
  assert.match(visit.body, /x-email[^]*jane/i)
})

test('Steps 2 to 4: the file runs with another application and provider, and changed rules apply while it runs', async (t) => {
  const ports = new Map<string, number>()
  const [application = ''] = (await ported(shell[1] ?? '', ports)).split('\n')
  const file = await ported(own, ports)
  const url = `http://localhost:${ports.get('8080')}`
  const provider = await startProvider(t, {
    client_id: 'orders',
    client_secret: env.CLIENT_SECRET,
    redirect_uris: [`${url}/.gatehouse/callback`],
    post_logout_redirect_uris: [`${url}/.gatehouse/signed-out`],
    backchannel_logout_uri: `${url}/.gatehouse/backchannel-logout`,
  })
  const withProvider = (text: string) => text.replace('https://id.example.com', provider.issuer)
  const cwd = folderWith(t, { 'gateway.yaml': withProvider(file) })
  startCommand(t, ['-c', `exec ${application}`], { program: ['/bin/sh'], cwd })
  const program = gatehouseWith({ watchFilesMs: 100 })
  const gateway = startCommand(t, commandIn(shell[2] ?? ''), { cwd, env, program })
  await gateway.said('gatehouse is ready')
  await until('the application listens', () => isUp(`http://127.0.0.1:${ports.get('3000')}`))

  const jane = new Browser('jane')
  const first = await jane.get(`${url}/orders`)
  assert.equal((JSON.parse(first.body) as Record<string, string>)['x-remote-user'], 'jane')

  writeFileSync(join(cwd, 'gateway.yaml'), withProvider(await ported(ruled, ports)))
  await gateway.said('config.reloaded')

  assert.equal((await jane.get(`${url}/admin/users`)).status, 403)
  assert.equal((await jane.get(`${url}/orders`)).status, 200)
  assert.equal((await new Browser('zoe').send(`${url}/static/logo.svg`)).status, 200)
  assert.match((await jane.get(`${url}/logout`)).url, /\/\.gatehouse\/signed-out/)
})

function isUp(url: string): Promise<boolean> {
  return fetch(url).then(
    ({ ok }) => ok,
    () => false,
  )
}

/** Both streams as a terminal shows them: errors come first. */
async function printed(t: TestContext, line: string, file: string): Promise<string> {
  const cwd = folderWith(t, { 'gateway.yaml': file })
  const command = startCommand(t, line.split(' '), { cwd, env })
  await command.ended
  return command.err() + command.out()
}

for (const { line, text } of blocks.filter(({ language }) => language === 'console'))
  test(`The page shows the actual output, line ${line}`, async (t) => {
    const file = blocks.findLast((block) => block.language === 'yaml' && block.line < line)?.text ?? ''
    const [command = '', ...shown] = text.split('\n')

    const out = await printed(t, command.replace('$ gatehouse ', ''), file)

    const path = new URL('../../docs/first-application.md', import.meta.url)
    if (process.env['UPDATE'] === '1') {
      const lines = readFileSync(path, 'utf8').split('\n')
      // Earlier output may have grown, so the search for the command begins where it was.
      const at = lines.indexOf(command, Math.max(0, line - 1))
      const end = lines.indexOf('```', at)
      writeFileSync(path, [...lines.slice(0, at + 1), ...out.trimEnd().split('\n'), ...lines.slice(end)].join('\n'))
    } else assert.equal(out, shown.join('\n'))
  })
