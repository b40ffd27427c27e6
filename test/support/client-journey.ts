import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import type { Browser } from './browser.ts'
import { until } from './until.ts'
import { startWorld, type World, type WorldOptions } from './world.ts'

/** After this time, in ms, the access token has expired: see `withFeatures`. */
const expired = 11 * 60_000

export interface ClientJourney {
  readonly world: World
  readonly jane: Browser
  /** The messages of `sign_in.failed` and other log lines, as text. */
  log(): string
}

/** A gateway whose client of the provider has these options. Nobody is signed in. */
export async function startClient(t: TestContext, options: WorldOptions): Promise<ClientJourney> {
  const session = options.session ?? 'idle_timeout: 8h\n  poll_userinfo: 30s'
  // A pushed or signed request hides the scope from the demo provider, which adds this otherwise.
  const { providerSettings = '' } = options
  const consent = providerSettings.includes('authorization_params') ? '' : 'authorization_params: { prompt: consent }'
  const world = await startWorld(t, {
    ...options,
    session,
    providerSettings: `${providerSettings}\n  ${consent}`,
  })
  return { world, jane: world.browser(), log: () => logText(world) }
}

/** Signs in, reads UserInfo again, and refreshes the tokens: each must succeed. */
export async function assertWholeJourney({ world, jane, log }: ClientJourney): Promise<void> {
  const { provider } = world
  const page = await jane.get(`${world.url}/echo`)
  assert.equal(page.status, 200, `${page.url} ${page.body.slice(-600)} ${log()}`)
  assert.match(page.body, /jane/)

  const polls = provider.hits('/oauth/userinfo')
  world.moveClock(40_000)
  await until('UserInfo was read again', async () => {
    assert.equal((await jane.get(`${world.url}/echo`)).status, 200)
    return provider.hits('/oauth/userinfo') > polls
  })

  const exchanges = provider.hits('/oauth/token')
  world.moveClock(expired)
  // The first request may share the work of the last one, which reads UserInfo.
  await until('the tokens were refreshed', async () => {
    assert.equal((await jane.send(`${world.url}/echo`)).status, 200, log())
    return provider.hits('/oauth/token') > exchanges
  })
  assert.doesNotMatch(log(), /session\.upkeep_failed|userinfo_failed/)
}

function logText({ replicas }: World): string {
  return JSON.stringify(replicas.map(({ log }) => log)).replaceAll('\\"', '"')
}
