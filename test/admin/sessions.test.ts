import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { SessionsAdministration, SessionSummary } from '../../src/admin/administration.ts'
import { type AdminSessionsParts, findSessions } from '../../src/admin/sessions.ts'
import type { SessionQuery, SessionsView } from '../../src/admin/view.ts'
import { restorePauses, setPauses } from '../support/pauses.ts'

const all: SessionQuery = { sub: '', sid: '', text: '', sort: 'began', page: 1 }

/** The list of a store with this many sessions, which all began at the same time. */
function listOf(count: number, query: Partial<SessionQuery> = {}): Promise<SessionsView> {
  const session = (index: number) => ({
    key: `key ${index}` as SessionSummary['key'],
    sub: `sub ${index}`,
    created_at: 0,
  })
  return listOfAll(
    Array.from({ length: count }, (_, index) => session(count - index)),
    query,
  )
}

async function listOfAll(
  sessions: readonly Partial<SessionSummary>[],
  query: Partial<SessionQuery>,
): Promise<SessionsView> {
  const administration: Pick<SessionsAdministration, 'list' | 'count'> = {
    async *list() {
      yield* sessions as readonly SessionSummary[]
    },
    count: async () => 12_345,
  }
  const parts = {
    administration: () => administration,
    running: () => ({ session: { keys: [Buffer.alloc(32, 1)] } }),
    clock: { now: () => 0 },
  }
  // Also on a busy machine, lists are read to their ends.
  setPauses({ searchSessionsMs: 600_000 })
  return (await findSessions({ ...all, ...query }, parts as unknown as AdminSessionsParts).finally(
    restorePauses,
  )) as SessionsView
}

for (const [sort, order] of [
  ['person', 'anna jane zoe'],
  ['-person', 'zoe jane anna'],
  ['activity', 'zoe anna jane'],
  ['-activity', 'jane anna zoe'],
  ['began', 'jane zoe anna'],
  ['-began', 'anna zoe jane'],
] as const)
  test(`sessions sorted by ${sort} are in the order ${order}`, async () => {
    const { found } = await listOfAll(
      [
        { sub: 'jane', created_at: 3 },
        { sub: 'zoe', created_at: 2, last_used_at: 300_000 },
        { sub: 'x', person: 'anna', created_at: 1, last_used_at: 200_000 },
      ].map((session) => ({ key: session.sub as SessionSummary['key'], ...session })),
      { sort },
    )

    assert.equal(found.map(({ sub, person = sub }) => person).join(' '), order)
  })

test('a list that is cut says how many sessions there are', async () => {
  const { found, pages, listed, isCut, count } = await listOf(10_001)

  assert.deepEqual([found.length, pages, listed, isCut, count], [25, 400, 10_000, true, 12_345])
})

test('a whole list counts its sessions, and an empty one has a page', async () => {
  const { isCut, count } = await listOf(10_000)
  assert.deepEqual([isCut, count], [false, 10_000])

  const { found, page, pages } = await listOf(0, { page: 7 })
  assert.deepEqual([found.length, page, pages], [0, 1, 1])
})

test('sessions of the same minute keep their places in each reading', async () => {
  const used = (...times: readonly number[]) =>
    listOfAll(
      times.map((last_used_at, index) => ({ key: `${index}` as SessionSummary['key'], sub: `${index}`, last_used_at })),
      { sort: 'activity' },
    )
  const keysOf = ({ found }: SessionsView) => found.map(({ key }) => key)

  assert.deepEqual(keysOf(await used(60_000, 60_001)), ['0', '1'])
  assert.deepEqual(keysOf(await used(60_001, 60_000)), ['0', '1'])
})

test('sessions that are equal in a column have the same order in each reading', async () => {
  const { found } = await listOf(9)

  assert.deepEqual(
    found.map(({ key }) => key),
    [1, 2, 3, 4, 5, 6, 7, 8, 9].map((index) => `key ${index}`),
  )
})
