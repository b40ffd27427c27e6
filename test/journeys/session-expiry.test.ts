import assert from 'node:assert/strict'
import { test } from 'node:test'
import { jane, page, startBed, type Bed, type Claims } from '../advisories/support.ts'
import { replacePauses } from '../support/pauses.ts'
import { openEventStream } from '../support/streams.ts'

// The claim session_expiry of the ID Token (IPSIE SL1 OpenID Connect Profile).

/** In seconds since the epoch. */
const inSeconds = (seconds: number) => Math.floor(Date.now() / 1000) + seconds

/** Signs in with these claims in the ID Token. Access tokens live for a minute. */
async function signInWith({ provider, signIn }: Bed, idToken: Claims): Promise<string> {
  provider.bend({ idToken, response: { expires_in: 60 } })
  return signIn()
}

/** The status of a page: 200, or 303 to the sign-in. */
const opens = async ({ ask }: Bed, cookie: string) => (await ask('/', { ...page, cookie })).status

/** When the session ends, as its pages learn it, in seconds since the epoch. */
async function endOf({ ask }: Bed, cookie: string): Promise<number> {
  const { body } = await ask('/.gatehouse/session', { cookie })
  const { expires_at } = JSON.parse(body) as { readonly expires_at: string }
  return Date.parse(expires_at) / 1000
}

test('A session ends when its provider says so, although it is in use', async (t) => {
  const bed = await startBed(t)
  const expiry = inSeconds(50)
  const cookie = await signInWith(bed, { session_expiry: expiry })
  assert.equal(await endOf(bed, cookie), expiry)

  bed.moveClock(45_000)
  assert.equal(await opens(bed, cookie), 200)
  bed.moveClock(5_000)

  assert.equal(await opens(bed, cookie), 303)
})

test('An open stream of the application ends with the session', async (t) => {
  replacePauses(t, { checkStreamsMs: 50 })
  const bed = await startBed(t, {
    application: (_req, res) => void res.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: 1\n\n'),
  })
  const cookie = await signInWith(bed, { session_expiry: inSeconds(50) })
  const stream = await openEventStream(t, `${bed.origin}/`, cookie)

  bed.moveClock(51_000)

  await stream.ended
})

test('A provider cannot make a session longer than absolute_timeout', async (t) => {
  const bed = await startBed(t, { session: 'absolute_timeout: 40s\n  idle_timeout: 40s' })
  const cookie = await signInWith(bed, { session_expiry: inSeconds(3600) })

  assert.ok((await endOf(bed, cookie)) <= inSeconds(41))
  bed.moveClock(41_000)

  assert.equal(await opens(bed, cookie), 303)
})

test('Each refresh may move the end: earlier, and later up to absolute_timeout', async (t) => {
  const bed = await startBed(t, { session: 'absolute_timeout: 240s\n  idle_timeout: 240s' })
  const [first, second] = [inSeconds(100), inSeconds(80)]
  const cookie = await signInWith(bed, { session_expiry: first })
  const limit = inSeconds(241)

  bed.provider.bend({ idToken: { session_expiry: second }, response: { expires_in: 10 } })
  bed.moveClock(61_000)
  assert.equal(await opens(bed, cookie), 200)
  assert.equal(await endOf(bed, cookie), second)

  bed.provider.bend({ idToken: { session_expiry: inSeconds(100_000) }, response: { expires_in: 3600 } })
  bed.moveClock(11_000)
  assert.equal(await opens(bed, cookie), 200)
  assert.ok((await endOf(bed, cookie)) > first)
  assert.ok((await endOf(bed, cookie)) <= limit)

  bed.moveClock(100_000)
  assert.equal(await opens(bed, cookie), 200, 'the store keeps it after the former end')
})

test('A refresh without the claim keeps the end', async (t) => {
  const bed = await startBed(t)
  const expiry = inSeconds(100)
  const cookie = await signInWith(bed, { session_expiry: expiry })

  bed.provider.bend({})
  bed.moveClock(61_000)
  assert.equal(await opens(bed, cookie), 200)

  assert.equal(await endOf(bed, cookie), expiry)
})

test('A session that has ended at the provider by its refreshed ID Token ends here, and the log says why', async (t) => {
  const bed = await startBed(t)
  const cookie = await signInWith(bed, { session_expiry: inSeconds(600) })

  bed.provider.bend({ idToken: { session_expiry: inSeconds(30) } })
  bed.moveClock(61_000)

  assert.equal(await opens(bed, cookie), 303)
  const ended = bed.log.find(({ message }) => message === 'session.ended')
  assert.equal(ended?.fields['by'], 'session_expiry')
})

for (const [what, session_expiry, status, said] of [
  ['has passed', inSeconds(-1), 403, /the session has ended at the provider at .*\(session_expiry\)/],
  ['is before all times', -1e300, 403, /ended at the provider at 1970-01-01/],
  ['is text', '2026-11-28', 502, /"session_expiry" is not a number of seconds/],
  ['is null', null, 502, /"session_expiry" is not a number of seconds/],
] as const)
  test(`A person whose session_expiry ${what} is not signed in, and sees a page`, async (t) => {
    const bed = await startBed(t)
    bed.provider.bend({ idToken: { session_expiry } })

    const failure = await bed.signIn().then(
      () => assert.fail('signed in'),
      (error: unknown) => String(error),
    )

    assert.match(failure, new RegExp(`HTTP/1.1 ${status}`))
    assert.match(failure, /<html/)
    const failed = bed.log.find(({ message }) => message === 'sign_in.failed')
    assert.match(String(failed?.fields['reason']), said)
  })

test('The claim may have another name', async (t) => {
  const name = 'https://id.example.com/session_expiry'
  const bed = await startBed(t, { provider: `claims: { session_expiry: "${name}" }` })
  const expiry = inSeconds(50)

  const cookie = await signInWith(bed, { [name]: expiry, session_expiry: inSeconds(500) })

  assert.equal(await endOf(bed, cookie), expiry)
})

// Claims about the authentication.

const mfaOnly = {
  rules:
    '[{ path: /admin/*, require: { claim: amr, any_of: [otp] } }, ' +
    '{ path: /*, headers: { X-Acr: acr, X-Auth-Time: auth_time } }]',
}

test('Rules and headers use acr, amr and auth_time of the ID Token, without a setting', async (t) => {
  const bed = await startBed(t, mfaOnly)
  const auth_time = inSeconds(-10)
  const cookie = await signInWith(bed, { acr: 'gold', amr: ['pwd', 'otp'], auth_time })

  assert.equal((await bed.ask('/admin/', { ...page, cookie })).status, 200)
  assert.equal((await bed.ask('/', { ...page, cookie })).status, 200)
  assert.equal(bed.seen.at(-1)?.headers['x-acr'], 'gold')
  assert.equal(bed.seen.at(-1)?.headers['x-auth-time'], String(auth_time))
})

test('The value of the ID Token counts, and that of UserInfo only without one', async (t) => {
  const bed = await startBed(t, mfaOnly)
  bed.provider.bend({ idToken: { amr: ['pwd'] } })
  const weak = await bed.signIn({ ...jane, amr: ['otp'], acr: 'gold' })
  bed.provider.bend({})
  const strong = await bed.signIn({ ...jane, amr: ['otp'] })

  assert.equal((await bed.ask('/admin/', { ...page, cookie: weak })).status, 403)
  assert.equal((await bed.ask('/', { ...page, cookie: weak })).status, 200)
  assert.equal(bed.seen.at(-1)?.headers['x-acr'], 'gold')
  assert.equal((await bed.ask('/admin/', { ...page, cookie: strong })).status, 200)
})
