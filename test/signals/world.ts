import type { TestContext } from 'node:test'
import { auditEventsIn } from '../support/audit-schema.ts'
import type { Browser } from '../support/browser.ts'
import { replacePauses } from '../support/pauses.ts'
import type { Json } from '../support/signing-provider.ts'
import { audience, startTransmitter, type Transmitter } from '../support/transmitter.ts'
import { until } from '../support/until.ts'
import { startWorld, type World, type WorldOptions } from '../support/world.ts'

export interface SignalWorld extends World {
  readonly transmitter: Transmitter
  /** Delivers one event. Resolves to the status. */
  event(type: string, subject: Json | undefined, details?: Json): Promise<number>
  /** The session of a person at the provider. */
  sidOf(sub: string): string
  /** The `iss_sub` subject of a person. */
  person(sub: string): Json
  hasSession(browser: Browser): Promise<boolean>
  /**
   * Moves the clock by hours, and waits. A check of the stream that ends after that counts its next
   * pause, of a minute, from the moved clock.
   */
  afterHours(hours: number, what: string, holds: () => boolean): Promise<void>
  /** What the audit events say, by their name. */
  audits(name: string): readonly Readonly<Record<string, unknown>>[]
}

export interface SignalOptions extends WorldOptions {
  /** YAML of `signals` in one line, after a comma. */
  readonly signals?: string | ((transmitter: Transmitter) => string)
  /** The first pause after an error or a response without events, in ms. */
  readonly retryMs?: number
  /** Called before the gateway starts. */
  readonly prepare?: (transmitter: Transmitter) => void
}

/** A gateway that receives security events. */
export async function startSignals(
  t: TestContext,
  { signals: given = '', prepare, retryMs = 50, ...options }: SignalOptions = {},
): Promise<SignalWorld> {
  replacePauses(t, { lookForSignalsMs: 50, retrySignalsMs: retryMs })
  const transmitter = await startTransmitter(t)
  prepare?.(transmitter)
  const signals = typeof given === 'string' ? given : given(transmitter)
  const own = `transmitter: "${transmitter.issuer}", audience: [${audience}], signing_alg: ES256`
  const world = await startWorld(t, {
    providerSettings: `signals: { ${own} ${signals === '' ? '' : `, ${signals}`} }`,
    ...options,
  })
  const { issuer } = world.provider
  return {
    ...world,
    transmitter,
    event: async (type, sub_id, details = {}) => {
      const token = transmitter.token({ sub_id, events: { [type]: details } })
      return (await transmitter.push(world.url, token)).status
    },
    sidOf: (sub) => world.provider.sessions().find((session) => session.sub === sub)?.sid ?? '',
    person: (sub) => ({ format: 'iss_sub', iss: issuer, sub }),
    afterHours: (hours, what, holds) => {
      world.moveClock(hours * 60 * 60 * 1000)
      return until(what, () => {
        world.moveClock(61_000)
        return holds()
      })
    },
    hasSession: async (browser) => (await browser.fetch(`${world.url}/api/me`)).status === 200,
    audits: (name) =>
      world.replicas.flatMap(({ log }) =>
        auditEventsIn(log).flatMap(({ message, fields }) => (message === name ? [fields] : [])),
      ),
  }
}
