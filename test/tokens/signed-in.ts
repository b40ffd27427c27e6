import type { TestContext } from 'node:test'
import type { Browser, Visit } from '../support/browser.ts'
import { startWorld, type World, type WorldOptions } from '../support/world.ts'

export interface SignedIn {
  readonly world: World
  readonly jane: Browser
  /** A request of a page that is open. */
  ask(): Promise<Visit>
  /** The identity headers that the upstream receives, by name in lower case. */
  told(): Promise<ReadonlyMap<string, string>>
  /** The number of token requests since the sign-in. */
  refreshes(): number
}

/** Jane is signed in with an access token that lives for ten seconds. */
export async function startSignedIn(t: TestContext, options: WorldOptions = {}): Promise<SignedIn> {
  const world = await startWorld(t, options)
  world.provider.bend('/oauth/token', shortLived)
  const jane = world.browser()
  await jane.get(`${world.url}/echo`)
  const before = world.provider.hits('/oauth/token')
  const ask = () => jane.fetch(`${world.url}/echo`)
  return {
    world,
    jane,
    ask,
    refreshes: () => world.provider.hits('/oauth/token') - before,
    told: async () => {
      const { headers } = JSON.parse((await ask()).body) as { headers: readonly (readonly [string, string])[] }
      return new Map(headers.map(([name, value]) => [name.toLowerCase(), value]))
    },
  }
}

export function shortLived(body: Record<string, unknown>): void {
  body['expires_in'] = 10
}
