import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { TestContext } from 'node:test'
import { ecKey, type Json, jwt, type SigningKey } from './signing-provider.ts'
import { Streams } from './transmitter-streams.ts'

export const caep = 'https://schemas.openid.net/secevent/caep/event-type/'
export const risc = 'https://schemas.openid.net/secevent/risc/event-type/'
/** The `aud` of the events of a transmitter. */
export const audience = 'https://orders.example.com'

/** A transmitter of security events (OpenID Shared Signals Framework 1.0). */
export interface Transmitter {
  readonly issuer: string
  readonly key: SigningKey
  /** The metadata. A test can change them. */
  metadata: Json
  /** Signs a token. Members of `payload` replace the usual ones; `undefined` removes one. */
  token(payload: Json, options?: { readonly key?: SigningKey; readonly header?: Json }): string
  readonly streams: Streams
  /** The number of requests to it. */
  hits(): number
  /** Delivers a token to the gateway at `url`; `provider`: the name of one of several. */
  push(url: string, token: string, headers?: Readonly<Record<string, string>>, provider?: string): Promise<Response>
}

let numbered = 0

export async function startTransmitter(t: TestContext): Promise<Transmitter> {
  const key = ecKey('signals')
  let hits = 0
  const server = createServer((req, res) => {
    hits += 1
    const send = (value: unknown) =>
      res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(value))
    if (req.url === '/.well-known/ssf-configuration/tenant') return void send(transmitter.metadata)
    if (req.url === '/jwks') return void send({ keys: [key.jwk] })
    if (req.url?.startsWith('/ssf/') === true) return void transmitter.streams.serve(req, res)
    res.writeHead(404).end()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const issuer = `${origin}/tenant`
  const streams = new Streams(origin, (payload) => transmitter.token(payload))
  const transmitter: Transmitter = {
    issuer,
    key,
    hits: () => hits,
    streams,
    metadata: { issuer, jwks_uri: `${origin}/jwks`, ...streams.metadata },
    token: (payload, { key: signer = key, header = {} } = {}) => {
      const usual = { iss: issuer, aud: audience, jti: `event-${(numbered += 1)}`, iat: Math.floor(Date.now() / 1000) }
      return jwt({ ...usual, ...payload }, signer, { typ: 'secevent+jwt', ...header })
    },
    push: (url, token, headers = {}, provider = '') =>
      fetch(`${url}/.gatehouse/${provider}security-events`, {
        method: 'POST',
        headers: { 'content-type': 'application/secevent+jwt', ...headers },
        body: token,
      }),
  }
  return transmitter
}
