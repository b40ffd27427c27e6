import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import { Browser, type Visit, type VisitOptions } from './browser.ts'

/** A key pair, and its public key as a JWK. */
export interface DeviceKey {
  readonly alg: 'ES256' | 'RS256'
  readonly privateKey: KeyObject
  readonly jwk: Readonly<Record<string, unknown>>
}

export function deviceKey(alg: DeviceKey['alg'] = 'ES256'): DeviceKey {
  const { privateKey, publicKey } =
    alg === 'ES256'
      ? generateKeyPairSync('ec', { namedCurve: 'P-256' })
      : generateKeyPairSync('rsa', { modulusLength: 2048 })
  return { alg, privateKey, jwk: publicKey.export({ format: 'jwk' }) as DeviceKey['jwk'] }
}

/** A proof of a key (W3C Device Bound Session Credentials §8.9). */
export function proofOf(
  { alg, privateKey, jwk }: DeviceKey,
  payload: Readonly<Record<string, unknown>>,
  header: Readonly<Record<string, unknown>> = {},
): string {
  const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const signed = `${part({ alg, typ: 'dbsc+jwt', jwk, ...header })}.${part(payload)}`
  const signature = sign('sha256', Buffer.from(signed), { key: privateKey, dsaEncoding: 'ieee-p1363' })
  return `${signed}.${signature.toString('base64url')}`
}

/** What the gateway asks for in `Secure-Session-Registration`. */
interface Registration {
  readonly url: string
  readonly challenge: string
}

/**
 * A browser with Device Bound Session Credentials. It registers and proves its key when a test says
 * so.
 */
export class DeviceBrowser extends Browser {
  readonly key: DeviceKey
  /** The last registration that a response has asked for. */
  registration: Registration | undefined
  /** The instructions of the gateway after the registration. */
  instructions: Readonly<Record<string, unknown>> = {}
  #challenge: string | undefined

  constructor(person: string, ca: string, key = deviceKey()) {
    super(person, ca)
    this.key = key
  }

  override async send(url: string, options: VisitOptions = {}): Promise<Visit> {
    const visit = await super.send(url, options)
    const asked = /^\(ES256 RS256\);path="([^"]+)";challenge="([^"]+)"$/.exec(
      String(visit.headers['secure-session-registration'] ?? ''),
    )
    const [, path, challenge = ''] = asked ?? []
    if (path !== undefined) this.registration = { url: new URL(path, url).href, challenge }
    return visit
  }

  /** Registers a key, as a browser does after the sign-in. */
  async register(key = this.key): Promise<Visit> {
    if (this.registration === undefined) throw new Error('no response has asked for a key')
    const { url, challenge } = this.registration
    const visit = await this.prove(url, { 'secure-session-response': proofOf(key, { jti: challenge }) })
    if (visit.status === 200) this.instructions = JSON.parse(visit.body) as Readonly<Record<string, unknown>>
    return visit
  }

  /** Proves the key again: asks for a challenge first, if it has none. */
  async renew(key: DeviceKey = this.key): Promise<Visit> {
    const id = String(this.instructions['session_identifier'])
    const url = new URL(String(this.instructions['refresh_url']), this.registration?.url).href
    const proof = this.#challenge && proofOf(key, { jti: this.#challenge }, { jwk: undefined })
    const visit = await this.prove(url, {
      'sec-secure-session-id': id,
      ...(proof && { 'secure-session-response': proof }),
    })
    const [, challenge] = /^"([^"]+)";id="/.exec(String(visit.headers['secure-session-challenge'] ?? '')) ?? []
    const isFirst = proof === undefined || challenge !== this.#challenge
    this.#challenge = challenge ?? this.#challenge
    return visit.status === 403 && challenge !== undefined && isFirst ? this.renew(key) : visit
  }

  /** A request that the browser makes by itself for a key. */
  prove(url: string, headers: Readonly<Record<string, string>>): Promise<Visit> {
    const own = {
      accept: '*/*',
      'sec-fetch-mode': 'no-cors',
      'sec-fetch-dest': 'empty',
      'sec-fetch-site': 'same-origin',
    }
    return this.send(url, { method: 'POST', headers: { ...own, ...headers } })
  }

  /** The cookies of this browser in another one, which has no key. */
  stolenBy(other: Browser): void {
    for (const [name, cookie] of this.cookies) if (/gatehouse/.test(name)) other.cookies.set(name, cookie)
  }
}
