import assert from 'node:assert/strict'
import { test } from 'node:test'
import { jane, page, startBed, type Bed, type Claims } from '../advisories/support.ts'

/** Jane's claims in UserInfo, and the additional claims of her ID Token. */
async function signInWith(bed: Bed, idToken: Claims, userinfo: Claims = { sub: 'jane' }): Promise<string> {
  bed.provider.bend({ idToken })
  return bed.signIn(userinfo)
}

const named = { provider: 'id_token_claims: [groups, "https://id.example.com/role"]' }

test('A listed claim of the ID Token becomes a header and can satisfy a rule', async (t) => {
  const bed = await startBed(t, named)
  const cookie = await signInWith(bed, { groups: ['staff', 'admins'] })

  assert.equal((await bed.ask('/admin/', { ...page, cookie })).status, 200)
  assert.equal(bed.seen.at(-1)?.headers['x-groups'], 'staff,admins')
})

test('A claim of the ID Token that is not listed is ignored', async (t) => {
  const bed = await startBed(t)
  const cookie = await signInWith(bed, { groups: ['admins'], email: 'root@example.com' })

  assert.equal((await bed.ask('/admin/', { ...page, cookie })).status, 403)
  await bed.ask('/', { ...page, cookie })
  assert.equal(bed.seen.at(-1)?.headers['x-groups'], undefined)
  assert.equal(bed.seen.at(-1)?.headers['x-email'], undefined)
})

test('For a claim from the ID Token, the value in UserInfo does not count', async (t) => {
  const bed = await startBed(t, named)

  const other = await signInWith(bed, { groups: ['staff'] }, { ...jane, groups: ['admins'] })
  const none = await signInWith(bed, {}, { ...jane, groups: ['admins'] })

  assert.equal((await bed.ask('/admin/', { ...page, cookie: other })).status, 403)
  assert.equal((await bed.ask('/admin/', { ...page, cookie: none })).status, 403)
  await bed.ask('/', { ...page, cookie: none })
  assert.equal(bed.seen.at(-1)?.headers['x-groups'], undefined)
  assert.equal(bed.seen.at(-1)?.headers['x-email'], jane['email'])
})

test('When the ID Token of a refresh lacks a group, the person loses access', async (t) => {
  const bed = await startBed(t, { ...named, session: 'idle_timeout: 3h' })
  const cookie = await signInWith(bed, { groups: ['admins'] })
  assert.equal((await bed.ask('/admin/', { ...page, cookie })).status, 200)

  const issued = Math.floor(Date.now() / 1000) + 3600
  bed.provider.bend({ idToken: { groups: ['staff'], iat: issued, exp: issued + 300 } })
  bed.moveClock(3_600_000)

  assert.equal((await bed.ask('/admin/', { ...page, cookie })).status, 403)
})

test('Listing sub does not change the identity, because sub always comes from the ID Token', async (t) => {
  const bed = await startBed(t, named)
  const cookie = await signInWith(bed, { groups: ['staff'], 'https://id.example.com/role': 'x' })

  await bed.ask('/', { ...page, cookie })

  assert.equal(bed.seen.at(-1)?.headers['x-remote-user'], 'jane')
})
