import assert from 'node:assert/strict'
import { test } from 'node:test'
import { cookiesOf, page, startBed } from './support.ts'

test('The gateway is not affected by GHSA-wcvh-g65p-v576 (mod_auth_openidc): a token that the provider issued for another party is valid here', async (t) => {
  for (const idToken of [
    { aud: 'another' },
    { aud: [] },
    { aud: undefined },
    { iss: 'https://evil.example' },
    { azp: 'another', aud: ['app', 'another'] },
  ]) {
    const bed = await startBed(t)
    bed.provider.bend({ idToken })
    const start = await bed.ask('/.gatehouse/sign-in', page)
    const back = bed.provider.authorize(start.header('location')[0] ?? '')

    const response = await bed.ask(back.pathname + back.search, { ...page, cookie: cookiesOf(start) })

    assert.ok(response.status >= 400, JSON.stringify(idToken))
    assert.ok(!response.header('set-cookie').some((line) => line.startsWith('gatehouse=')))
  }
})
