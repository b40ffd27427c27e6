import assert from 'node:assert/strict'
import { test } from 'node:test'
import { jane, page, startBed, type Bed, type Claims } from '../advisories/support.ts'

/** Jane, as userinfo knows her, and what her ID Token says beside that. */
async function signInWith(bed: Bed, idToken: Claims, userinfo: Claims = { sub: 'jane' }): Promise<string> {
  bed.provider.bend({ idToken })
  return bed.signIn(userinfo)
}

const named = { provider: 'id_token_claims: [groups, "https://id.example.com/role"]' }

test('a claim of the ID Token that is named becomes a header, and meets a rule', async (t) => {
  const bed = await startBed(t, named)
  const cookie = await signInWith(bed, { groups: ['staff', 'admins'] })

  assert.equal((await bed.ask('/admin/', { ...page, cookie })).status, 200)
  assert.equal(bed.seen.at(-1)?.headers['x-groups'], 'staff,admins')
})

test('a claim of the ID Token that is not named is nobody’s business', async (t) => {
  const bed = await startBed(t)
  const cookie = await signInWith(bed, { groups: ['admins'], email: 'root@example.com' })

  assert.equal((await bed.ask('/admin/', { ...page, cookie })).status, 403)
  await bed.ask('/', { ...page, cookie })
  assert.equal(bed.seen.at(-1)?.headers['x-groups'], undefined)
  assert.equal(bed.seen.at(-1)?.headers['x-email'], undefined)
})

test('what userinfo says of a claim that is taken from the ID Token does not count', async (t) => {
  const bed = await startBed(t, named)

  const other = await signInWith(bed, { groups: ['staff'] }, { ...jane, groups: ['admins'] })
  const none = await signInWith(bed, {}, { ...jane, groups: ['admins'] })

  assert.equal((await bed.ask('/admin/', { ...page, cookie: other })).status, 403)
  assert.equal((await bed.ask('/admin/', { ...page, cookie: none })).status, 403)
  await bed.ask('/', { ...page, cookie: none })
  assert.equal(bed.seen.at(-1)?.headers['x-groups'], undefined)
  assert.equal(bed.seen.at(-1)?.headers['x-email'], jane['email'])
})

test('a group that the ID Token of a refresh does not have any more shuts the door', async (t) => {
  const bed = await startBed(t, { ...named, session: 'idle_timeout: 3h' })
  const cookie = await signInWith(bed, { groups: ['admins'] })
  assert.equal((await bed.ask('/admin/', { ...page, cookie })).status, 200)

  const issued = Math.floor(Date.now() / 1000) + 3600
  bed.provider.bend({ idToken: { groups: ['staff'], iat: issued, exp: issued + 300 } })
  bed.moveClock(3_600_000)

  assert.equal((await bed.ask('/admin/', { ...page, cookie })).status, 403)
})

test('who it is cannot be changed by a name in the list: sub stays that of the ID Token', async (t) => {
  const bed = await startBed(t, named)
  const cookie = await signInWith(bed, { groups: ['staff'], 'https://id.example.com/role': 'x' })

  await bed.ask('/', { ...page, cookie })

  assert.equal(bed.seen.at(-1)?.headers['x-remote-user'], 'jane')
})
