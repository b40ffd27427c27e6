import type { TestContext } from 'node:test'
import { auditEventsIn } from '../support/audit-schema.ts'
import { issueCertificates } from '../support/certificates.ts'
import { DeviceBrowser, type DeviceKey } from '../support/device-browser.ts'
import { startWorld, type World, type WorldOptions } from '../support/world.ts'

export interface DeviceWorld extends World {
  /** A browser that can bind its session. */
  device(person?: string, key?: DeviceKey): DeviceBrowser
  /** Signs in, and binds the session. */
  bound(person?: string): Promise<DeviceBrowser>
  /** The audit events of all replicas with this name. Each matches the schema. */
  events(name: string): readonly Readonly<Record<string, unknown>>[]
}

/** The name of the bound cookie. */
export const boundCookie = '__Host-gatehouse-bound'
/** How long a bound cookie is accepted in these worlds, with the overlap, in ms. */
export const acceptedMs = 5 * 60_000 + 30_000

/** A gateway that browsers reach over https, because they bind sessions nowhere else. */
export async function startDeviceWorld(t: TestContext, options: WorldOptions = {}): Promise<DeviceWorld> {
  const { server, client } = issueCertificates()
  const tls = `tls: { cert_file: ${server.cert}, key_file: ${server.key} }`
  const ca = client.ca ?? ''
  const world = await startWorld(t, {
    externalUrl: (port) => `https://localhost:${port}`,
    listen: (address) => `{ address: "${address}", ${tls} }`,
    browserCa: ca,
    ...options,
  })
  const device = (person = 'jane', key?: DeviceKey) => new DeviceBrowser(person, ca, key)
  return {
    ...world,
    device,
    bound: async (person) => {
      const browser = device(person)
      await browser.get(`${world.url}/`)
      const { status, body } = await browser.register()
      if (status !== 200) throw new Error(`not registered: ${status} ${body}`)
      return browser
    },
    events: (name) =>
      world.replicas.flatMap(({ log }) =>
        auditEventsIn(log).flatMap(({ message, fields }) => (message === name ? [fields] : [])),
      ),
  }
}
