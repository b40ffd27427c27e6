import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Browser } from '../support/browser.ts'
import { replacePauses } from '../support/pauses.ts'
import { play, type Behaviour } from './hostile-scenarios.ts'
import { startHostileWorld, type HostileWorld } from './hostile-world.ts'
import { caseName, readCases } from './lanes.ts'

const { cases } = readCases<{ readonly cases: readonly Behaviour[] }>('hostile-provider.json')

/** Each group has its own file, so that the groups run in parallel. */
const groups = {
  'ID Tokens': /^idt-/,
  claims: /^claim-/,
  'token and UserInfo endpoints': /^(?:tok|ui)-/,
  'metadata and keys': /^(?:disc|jwks)-/,
  'callbacks and cookies': /^(?:cb|cookie|fixation|deeplink|no-leak)/,
  'Logout Tokens': /^bcl-/,
  'refreshes and signing out': /^(?:ref|rpl)-/,
}

/**
 * Runs the cases of a group, several at once, and reports how many there are and how many passed.
 */
export function playGroup(group: keyof typeof groups): void {
  const rows = cases.filter(({ id }) => groups[group].test(id))
  test(`The gateway resists a misbehaving provider: ${group}`, { concurrency: 4 }, async (t) => {
    // A gateway waits for its provider at the start, in vain in most cases of this group.
    if (group === 'metadata and keys') replacePauses(t, { waitForDependenciesMs: 300 })
    let passed = 0
    await Promise.all(
      rows.map((row) =>
        t.test(caseName({ ...row, name: `${row.id}: ${row.what}` }), async (t) => {
          const isPatient = !JSON.stringify(row).includes('"hang"')
          const world = await startHostileWorld(t, { bends: row.provider, settings: row.settings, isPatient })
          const alice = world.browser()
          await play({ row, world, alice })
          await judgeTraces(row, world, alice)
          passed += 1
        }),
      ),
    )
    t.diagnostic(`cases ${rows.length}, passed ${passed}`)
  })
}

/** @throws when a case is in no group, or in two */
export function everyCaseIsInOneGroup(): void {
  for (const { id } of cases) assert.equal(Object.values(groups).filter((ids) => ids.test(id)).length, 1, id)
}

/**
 * Checks the traces of a case at the application, the attacker and the provider, and that the
 * gateway still runs.
 */
async function judgeTraces({ id, expect }: Behaviour, world: HostileWorld, alice: Browser): Promise<void> {
  const { provider, seen } = world
  for (const name of expect.upstreamLacks ?? []) assert.ok(!seen.some(({ headers }) => name in headers), name)
  const { headersLack } = expect
  if (headersLack !== undefined)
    assert.ok(!seen.some(({ values }) => values.some((value) => value.includes(headersLack))), headersLack)
  if (expect.evilIsAlone) assert.equal(provider.hits('evil'), 0, 'the attacker was asked')
  if (expect.reuse === 0) assert.equal(provider.hits('refresh_reuse'), 0, 'a spent refresh token was sent')
  if (!id.startsWith('disc-')) assert.deepEqual(provider.violations, [])
  if (expect.sidStill) await isFoundBySid(world, alice)

  provider.bends = {}
  const stranger = world.browser()
  assert.notEqual((await world.visit(stranger)).status, 500)
  assert.equal(await world.isSignedIn(stranger), false)
}

async function isFoundBySid(world: HostileWorld, alice: Browser): Promise<void> {
  assert.equal(await world.isSignedIn(alice), true)
  const token = world.provider.logoutToken({ del: ['sub'] })
  assert.equal((await world.postLogoutToken(`logout_token=${encodeURIComponent(token)}`)).status, 200)
  assert.equal(await world.isSignedIn(alice), false)
}
