import { X509Certificate } from 'node:crypto'
import { request, type IncomingMessage } from 'node:http'
import type { TestContext } from 'node:test'
import { startWorld, type World, type WorldOptions } from '../support/world.ts'

/** Names and values, in order. A name may occur more than once. */
export type Fields = readonly (readonly [name: string, value: string])[]

export interface CheckResponse {
  readonly status: number
  readonly headers: IncomingMessage['headers']
  readonly body: string
}

/** A world with the wiki below `/wiki/`, whose requests another proxy carries. */
export interface AskedWorld extends World {
  /** The `Cookie` header of a signed-in person. */
  signIn(person?: string): Promise<string>
  /** Sends a check request, as a proxy on this machine. */
  ask(fields: Fields, options?: AskOptions): Promise<CheckResponse>
  /** The fields with which Traefik and Caddy describe a page load of the wiki. */
  described(changes?: Readonly<Record<string, string | undefined>>): Fields
}

export interface AskOptions {
  readonly endpoint?: string
  readonly method?: string
  readonly host?: string
}

export async function startAskedWorld(
  t: TestContext,
  {
    wiki = '',
    wikiRules = '',
    ...options
  }: WorldOptions & { readonly wiki?: string; readonly wikiRules?: string } = {},
): Promise<AskedWorld> {
  const world = await startWorld(t, {
    settings: 'trusted_proxies: [127.0.0.1]',
    headers: 'X-Remote-User: sub',
    ...options,
    upstreamSettings: `rules: [{ path: /open/*, access: public }]
  wiki:
    path: /wiki
    forward_auth: true
    headers:
      X-Remote-User: sub
      X-Groups: { claim: fields.groups, join: ",", encode: percent }
      X-Nickname: nickname
    request_headers: { remove: [OIDC_*] }
    rules:
    - { path: /wiki/public/*, access: public }
    - { path: /wiki/admin/*, require: { claim: fields.groups, any_of: [admins] } }
    - { path: /wiki/write/*, methods: [POST], require: { claim: fields.groups, any_of: [admins] } }
    ${wikiRules}
    logout: { paths: [/wiki/logout], cookies: [WIKISESSION] }
    ${wiki}`,
  })
  const { host } = new URL(world.url)
  return {
    ...world,
    signIn: async (person) => {
      const browser = world.browser(person)
      await browser.get(`${world.url}/.gatehouse/sign-in?return_to=%2Fecho`)
      return `gatehouse=${browser.cookies.get('gatehouse')?.value ?? ''}`
    },
    ask: (fields, asked) => ask(world.url, fields, { host, ...asked }),
    described: (changes = {}) =>
      Object.entries({
        'X-Forwarded-Method': 'GET',
        'X-Forwarded-Proto': 'http',
        'X-Forwarded-Host': host,
        'X-Forwarded-Uri': '/wiki/page?a=1',
        'X-Forwarded-For': '192.0.2.7',
        Accept: 'text/html',
        ...changes,
      }).flatMap(([name, value]) => (value === undefined ? [] : [[name, value] as const])),
  }
}

/** A PEM certificate as a proxy sends it (RFC 9440). */
export function clientCertOf(pem: string): string {
  return `:${new X509Certificate(pem).raw.toString('base64')}:`
}

function ask(
  url: string,
  fields: Fields,
  { endpoint = 'forward-auth', method = 'GET', host = '' }: AskOptions,
): Promise<CheckResponse> {
  const { hostname, port } = new URL(url)
  return new Promise((resolve, reject) => {
    // `URL` would resolve dot segments.
    const path = `/.gatehouse/${endpoint}`
    const headers = ['Host', host, ...fields.flat()]
    const req = request({ host: hostname, port, path, method, headers: headers as never, agent: false }, (res) => {
      let body = ''
      res.setEncoding('utf8').on('data', (text: string) => (body += text))
      res.on('end', () => resolve({ status: res.statusCode ?? 0, headers: res.headers, body }))
    })
    req.on('upgrade', () => reject(new Error('the gateway has switched protocols')))
    req.on('error', reject).end()
  })
}
