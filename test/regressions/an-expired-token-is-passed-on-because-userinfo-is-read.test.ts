import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startSignedIn } from '../tokens/signed-in.ts'

test('A request that arrives while UserInfo is read still waits for the refresh of its expired token', async (t) => {
  const { world, ask, told, refreshes } = await startSignedIn(t, {
    session: 'poll_userinfo: 30s',
    headers: 'Authorization: { bearer: access_token }',
  })
  world.provider.bend('/oauth/token', (body) => void (body['expires_in'] = 600))
  world.moveClock(11_000)
  await ask()
  const [before, expired] = [refreshes(), (await told()).get('authorization')]
  let release = () => {}
  const isRead = new Promise<void>((resolve) => {
    const mend = world.provider.fault('/oauth/userinfo', (_req, _res, pass) => {
      release = () => {
        // The refresh reads UserInfo again.
        mend()
        pass()
      }
      resolve()
    })
  })
  world.moveClock(31_000)
  await ask()
  await isRead

  world.moveClock(600_000)
  const waiting = told()
  release()

  assert.notEqual((await waiting).get('authorization'), expired)
  assert.equal(refreshes(), before + 1)
})
