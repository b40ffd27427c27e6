// Slow: 7 s, each command is a process of its own
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { gatehouse, startCommand } from '../support/command.ts'
import { basic, makeKey, send, signedIn, startKeyWorld } from '../support/key-world.ts'
import { openEventStream } from '../support/streams.ts'
import { secrets, startWorld, type Replica, type World } from '../support/world.ts'

/** Runs `gatehouse sessions` as a process next to the replicas. */
async function gatehouseSessions(t: TestContext, world: World, ...args: readonly string[]) {
  const { file } = world.replicas[0] as Replica
  const command = startCommand(t, ['sessions', ...args, '--config', file], { env: secrets })
  const exitCode = await command.ended
  return { exitCode, out: command.out(), err: command.err() }
}

const userAgent = 'Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:140.0) Gecko/20100101 Firefox/140.0'

/** The session keys of a listing. */
function keysIn(listing: string): string[] {
  return [...listing.matchAll(/^(\S{24}:\S{32})  /gm)].map(([, key = '']) => key)
}

async function janeAndSamir(t: TestContext) {
  const world = await startWorld(t, { store: 'redis', replicas: 2 })
  const [first, second] = world.replicas as [Replica, Replica]
  const [jane, samir] = [world.browser('jane'), world.browser('samir')]
  jane.userAgent = userAgent
  for (const browser of [jane, samir]) {
    await browser.get(`${first.url}/echo`)
    assert.equal((await browser.fetch(`${second.url}/echo`)).status, 200)
  }
  const sidOf = (sub: string) => world.provider.sessions().find((session) => session.sub === sub)?.sid ?? ''
  return { world, first, second, jane, samir, sidOf }
}

test('An administrator lists the sessions and sees no secret', async (t) => {
  const { world, jane, sidOf } = await janeAndSamir(t)

  const all = await gatehouseSessions(t, world, 'list')
  const ofJane = await gatehouseSessions(t, world, 'list', '--sub', 'jane')
  const asJson = await gatehouseSessions(
    t,
    world,
    'list',
    // One argument, because a sid may begin with "-".
    `--sid=${sidOf('samir')}`,
    '--upstream',
    'orders',
    '--format',
    'json',
  )
  const [key = ''] = keysIn(ofJane.out)
  const shown = await gatehouseSessions(t, world, 'show', key)
  const shownAsJson = await gatehouseSessions(t, world, 'show', key, '--format', 'json')

  for (const { exitCode, err } of [all, ofJane, asJson, shown, shownAsJson]) assert.equal(exitCode, 0, err)
  assert.equal(keysIn(all.out).length, 2)
  assert.match(
    ofJane.out,
    new RegExp(
      `^session +signed in at +expires at +sub  sid\\n${key}  \\d{4}-\\S+Z  \\d{4}-\\S+Z  jane  ${sidOf('jane')}\\n$`,
    ),
  )
  const { session, signed_in_at, last_used_at, expires_at, ...samir } = JSON.parse(asJson.out) as Record<
    string,
    unknown
  >
  assert.deepEqual(samir, { sub: 'samir', sid: sidOf('samir'), origin: world.url, address: '127.0.0.1', bound: false })
  assert.ok(keysIn(all.out).includes(String(session)))
  assert.equal(Date.parse(String(expires_at)) > Date.parse(String(signed_in_at)), true)
  const sinceSignIn = Date.parse(String(last_used_at)) - Date.parse(String(signed_in_at))
  assert.ok(sinceSignIn >= 0 && sinceSignIn < 60_000, String(last_used_at))
  assert.match(shown.out, /^browser +Firefox 140 on Windows$/m)
  assert.match(shown.out, /^address +127\.0\.0\.1$/m)
  assert.match(shown.out, /^last used at +\d{4}-\S+Z, approximately$/m)
  assert.match(shown.out, /^bound +no$/m)
  assert.match(shown.out, /^refresh token +(yes|no)$/m)
  assert.match(shown.out, /^claim names +.*\bemail\b.*\bsub\b/m)
  const details = JSON.parse(shownAsJson.out) as { session: string; refresh_token: boolean; claim_names: string[] }
  assert.deepEqual([details.session, typeof details.refresh_token], [key, 'boolean'])
  assert.ok(details.claim_names.includes('email'))
  const everything = [all, ofJane, asJson, shown, shownAsJson].map(({ out }) => out).join()
  assert.doesNotMatch(everything, /@|eyJ/)
  assert.ok(!everything.includes(jane.cookies.get('gatehouse')?.value ?? ''))
})

test('An administrator sees which records are keys, finds them by their upstream, and ends one', async (t) => {
  const world = await startKeyWorld(t, { store: 'redis' })
  const jane = await signedIn(world)
  const key = await makeKey(jane, world)
  const list = async (...args: readonly string[]) => {
    const { out } = await gatehouseSessions(t, world, 'list', '--format', 'json', ...args)
    return out
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as Readonly<Record<string, string>>)
  }

  const all = await list('--upstream', 'orders')
  const found = all.find((session) => session['key'] !== undefined)

  assert.equal(all.length, 2)
  assert.deepEqual(found?.['key'], { name: 'DAVx5', upstream: 'orders' })
  assert.equal(found['browser'], 'key “DAVx5” for orders')
  const { out } = await gatehouseSessions(t, world, 'end', found['session'] ?? '')
  assert.match(out, /^1 session ended\n/)
  assert.equal((await send(`${world.url}/echo`, basic(key))).status, 401)
  assert.equal((await list()).length, 1, 'the session of the browser stays')
})

test('A person whose sessions an administrator ends is signed out at every replica and at the provider, and others stay signed in', async (t) => {
  const { world, first, second, jane, samir } = await janeAndSamir(t)
  const stream = await openEventStream(t, `${second.url}/events`, jane.cookieHeader)
  const ofSamir = await openEventStream(t, `${second.url}/events`, samir.cookieHeader)

  const { exitCode, out, err } = await gatehouseSessions(t, world, 'end', '--sub', 'jane')

  for (const { url } of [first, second]) assert.equal((await jane.fetch(`${url}/echo`)).status, 401)
  await stream.ended
  assert.equal(exitCode, 0, err)
  assert.equal(out, `1 session ended\nat the provider ${world.provider.issuer}, 1 session: ended there too\n`)
  const event = err.split('\n').find((line) => line.includes('session.ended')) ?? '{}'
  const { audit, by, sub } = JSON.parse(event) as Record<string, unknown>
  assert.deepEqual({ audit, by, sub }, { audit: true, by: 'administrator', sub: 'jane' })
  assert.doesNotMatch(err, /not every process|warning/)
  assert.deepEqual(
    world.provider.sessions().map(({ sub }) => sub),
    ['samir'],
  )
  for (const { url } of [first, second]) assert.equal((await samir.fetch(`${url}/echo`)).status, 200)
  const stillOpen = Symbol('still open')
  const after = new Promise((resolve) => setImmediate(resolve, stillOpen))
  assert.equal(await Promise.race([ofSamir.ended, after]), stillOpen)
})

test('On a terminal, an administrator reads log lines and then the result as plain text, not as JSON', async (t) => {
  const { world } = await janeAndSamir(t)
  const { file } = world.replicas[0] as Replica
  const line = [...gatehouse, 'sessions', 'end', '--sub', 'jane', '--config', file].join(' ')

  const terminal = startCommand(t, ['-qec', line, '/dev/null'], {
    program: ['script'],
    env: { ...secrets, NO_COLOR: '1' },
  })

  assert.equal(await terminal.ended, 0)
  assert.doesNotMatch(terminal.out(), /\{"/)
  assert.match(
    terminal.out(),
    /session\.ended.* by=administrator[^]*\n1 session ended\r\nat the provider \S+, 1 session: ended there too\r\n$/,
  )
})

test('The sessions end when the provider is unreachable, and the output says so', async (t) => {
  const { world, first, jane, samir } = await janeAndSamir(t)
  const [key = ''] = keysIn((await gatehouseSessions(t, world, 'list', '--sub', 'jane')).out)
  await world.provider.down()

  const one = await gatehouseSessions(t, world, 'end', key)
  const again = await gatehouseSessions(t, world, 'end', key)
  const nobody = await gatehouseSessions(t, world, 'end', '--sub', 'jane')
  const all = await gatehouseSessions(t, world, 'end', '--all', '--yes', '--format', 'json')

  assert.equal(one.exitCode, 0)
  assert.match(
    one.out,
    /^1 session ended\nat the provider \S+, 1 session: not ended there, because the provider could not be reached/,
  )
  assert.equal(again.exitCode, 1)
  assert.match(again.err, /^gatehouse: unknown session /m)
  assert.deepEqual([nobody.exitCode, nobody.out], [0, '0 sessions ended\n'])
  assert.deepEqual(JSON.parse(all.out), { version: 1, ended: 1, at_provider: { unreachable: 1 } })
  for (const browser of [jane, samir]) assert.equal((await browser.fetch(`${first.url}/echo`)).status, 401)
})

test('An administrator can end all sessions while the provider is unreachable, without one failed request for each', async (t) => {
  const world = await startWorld(t, { store: 'redis' })
  const browsers = Array.from({ length: 27 }, () => world.browser())
  for (const browser of browsers) await browser.get(`${world.url}/echo`)
  await world.provider.down()

  const { exitCode, out } = await gatehouseSessions(t, world, 'end', '--all', '--yes')

  assert.equal(exitCode, 0)
  assert.match(
    out,
    /^27 sessions ended\n.*, 10 sessions: not ended there, because .*\n.*, 17 sessions: no request was sent\n$/,
  )
  for (const browser of browsers) assert.equal((await browser.fetch(`${world.url}/echo`)).status, 401)
})

test('A gateway that is another client of the same Redis keeps its sessions', async (t) => {
  const { world, jane } = await janeAndSamir(t)
  const other = await startWorld(t, { store: 'redis', redis: world.redis, client_id: 'invoices' })
  const there = other.browser('jane')
  await there.get(`${other.url}/echo`)

  const { out } = await gatehouseSessions(t, world, 'end', '--all', '--yes')

  assert.match(out, /^2 sessions ended\n/)
  assert.equal((await jane.fetch(`${world.url}/echo`)).status, 401)
  assert.equal((await there.fetch(`${other.url}/echo`)).status, 200)
})

test('Errors name a memory store, an unreachable Redis, an unknown session and an unknown upstream', async (t) => {
  const inMemory = await startWorld(t)
  const world = await startWorld(t, { store: 'redis' })

  const memory = await gatehouseSessions(t, inMemory, 'list')
  const wrongKey = await gatehouseSessions(t, world, 'show', `-${'x'.repeat(23)}:${'y'.repeat(32)}`)
  const noKey = await gatehouseSessions(t, world, 'end', 'jane')
  const noUpstream = await gatehouseSessions(t, world, 'end', '--upstream', 'invoices')
  await world.redis?.kill()
  const away = await gatehouseSessions(t, world, 'end', '--all', '--yes')

  assert.deepEqual(
    [memory, wrongKey, noKey, noUpstream, away].map(({ exitCode, out }) => [exitCode, out]),
    Array(5).fill([1, '']),
  )
  assert.match(memory.err, /^gatehouse: \S+ keeps sessions in the memory of the gateway/m)
  assert.match(wrongKey.err, /^gatehouse: unknown session -xxx/m)
  assert.match(noKey.err, /^gatehouse: unknown session jane$/m)
  assert.match(noUpstream.err, /^gatehouse: \S*gateway\.yaml has no upstream "invoices"/m)
  assert.match(away.err, /^gatehouse: the session store at \S+ is not available/m)
})
