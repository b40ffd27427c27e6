import { createHash } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { TestContext } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { logoutEvent, part, type Json } from '../support/signing-provider.ts'
import { bent, keys, random, seconds, signedToken, type TokenBend } from './hostile-tokens.ts'

/** The fault of an endpoint: what it does instead of responding, or how it changes its response. */
export interface ResponseBend {
  readonly set?: Json
  readonly del?: readonly string[]
  readonly status?: number
  readonly body?: string
  readonly ctype?: string
  /** The value of `Content-Encoding`. The content is not encoded. */
  readonly encoding?: string
  readonly redirect?: string
  /** Never responds. */
  readonly hang?: number
  readonly reset?: boolean
  readonly truncate?: boolean
}

/** The faults of the provider. Absent members mean correct behavior. */
export interface Bends {
  readonly discovery?: ResponseBend
  readonly jwks?: ResponseBend & { readonly mode?: string }
  readonly authz?: {
    readonly set?: Readonly<Record<string, string>>
    readonly del?: readonly string[]
    readonly add?: readonly (readonly [string, string])[]
    readonly error?: string
    readonly error_description?: string
    /** The parameter that loses its last character. */
    readonly cut?: string
    /** By redirect, whatever was asked for. */
    readonly asQuery?: boolean
  }
  readonly token?: ResponseBend & { readonly big?: number }
  readonly idToken?: TokenBend
  readonly userinfo?: ResponseBend & { readonly many?: number }
  /** From the first refresh on. */
  readonly userinfoAfter?: ResponseBend
  readonly refreshToken?: ResponseBend
  readonly refreshIdToken?: TokenBend
  readonly noRefreshIdToken?: boolean
  readonly noRotate?: boolean
  readonly refreshDelay?: number
  readonly expiresIn?: number
  readonly revoke?: ResponseBend
  readonly publish?: readonly string[]
  readonly rotateKeys?: 'weak' | 'between' | 'before-sign'
}

interface Grant {
  readonly nonce?: string
  readonly code_challenge?: string
  readonly redirect_uri?: string
  readonly isRefresh?: boolean
}

const metadata = {
  response_types_supported: ['code'],
  response_modes_supported: ['query', 'form_post'],
  subject_types_supported: ['public'],
  id_token_signing_alg_values_supported: ['RS256', 'ES256'],
  token_endpoint_auth_methods_supported: ['client_secret_basic', 'client_secret_post'],
  code_challenge_methods_supported: ['S256'],
  backchannel_logout_supported: true,
  backchannel_logout_session_supported: true,
  authorization_response_iss_parameter_supported: true,
}

export async function startHostileProvider(
  t: TestContext,
  client: { readonly client_id: string; readonly client_secret: string },
): Promise<HostileProvider> {
  const server = createServer((req, res) => void provider.handle(req, res).catch((error) => res.destroy(error)))
  server.on('connection', (socket) => socket.on('error', () => {}))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  const provider = new HostileProvider(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, client)
  return provider
}

/**
 * An OpenID Provider whose responses can all be changed, and that records the violations of its
 * client.
 */
export class HostileProvider {
  readonly issuer: string
  readonly client_id: string
  readonly client_secret: string
  bends: Bends = {}
  active = 'a'
  published: readonly string[] = ['a', 'ec']
  sub = `user-${random(6)}`
  sid = `sid-${random(9)}`
  /** The violations of the client. */
  readonly violations: string[] = []
  lastToken: Json = {}
  /** The last authorization request, and the last request to the token endpoint. */
  asked: Readonly<Record<string, string>> = {}
  lastTokenRequest: { readonly form: URLSearchParams; readonly authorization: string } | undefined
  oldNonce = 'old-nonce'
  readonly #hits = new Map<string, number>()
  readonly #codes = new Map<string, Grant>()
  readonly #refreshTokens = new Map<string, Grant>()
  readonly #spent = new Set<string>()

  constructor(issuer: string, client: { readonly client_id: string; readonly client_secret: string }) {
    this.issuer = issuer
    this.client_id = client.client_id
    this.client_secret = client.client_secret
  }

  hits(what: string): number {
    return this.#hits.get(what) ?? 0
  }

  idToken(grant: Grant & { readonly access_token?: string }, bend: TokenBend = {}): string {
    const now = seconds()
    const { access_token, nonce } = grant
    const at_hash =
      access_token && createHash('sha256').update(access_token).digest().subarray(0, 16).toString('base64url')
    const { issuer: iss, sub, sid, client_id: aud } = this
    const identity = { email: 'alice@example.com', email_verified: true, name: 'Alice' }
    const claims: Json = { iss, sub, aud, sid, exp: now + 3600, iat: now, auth_time: now, at_hash, ...identity }
    if (grant.isRefresh !== true) claims['nonce'] = nonce
    return this.#sign(claims, bend, 'JWT', nonce)
  }

  logoutToken(bend: TokenBend = {}): string {
    const now = seconds()
    const { issuer: iss, sub, sid, client_id: aud } = this
    const claims: Json = { iss, sub, aud, sid, iat: now, exp: now + 120, jti: random(), events: { [logoutEvent]: {} } }
    return this.#sign(claims, bend, 'logout+jwt')
  }

  #sign(claims: Json, bend: TokenBend, typ: string, nonce?: string): string {
    const filled = this.#filled(bend, nonce) as TokenBend
    return signedToken(bent(claims, filled), filled, this.active, this.client_secret, typ)
  }

  /** The values of the `$…` placeholders. */
  #filled(value: unknown, nonce?: string): unknown {
    if (Array.isArray(value)) return value.map((member) => this.#filled(member, nonce))
    if (typeof value === 'object' && value !== null)
      return bent({}, { set: Object.fromEntries(Object.entries(value).map(([k, v]) => [k, this.#filled(v, nonce)])) })
    if (typeof value !== 'string' || !value.startsWith('$')) return value
    const [, now] = /^\$now([+-]\d+)?$/.exec(value) ?? []
    if (value === '$now' || now !== undefined) return seconds() + Number(now ?? 0)
    const [, count, text] = /^\$repeat:(\d+):(.*)$/s.exec(value) ?? []
    if (count !== undefined && text !== undefined) return text.repeat(Number(count))
    const [, depth] = /^\$nested:(\d+)$/.exec(value) ?? []
    if (depth !== undefined) return `${'{"a":'.repeat(Number(depth))}1${'}'.repeat(Number(depth))}`
    const { issuer, sub, sid, client_id } = this
    const known: Readonly<Record<string, unknown>> = {
      $client: client_id,
      $issuer: issuer,
      $issuerslash: `${issuer}/`,
      $issuerupper: issuer.replace('http', 'HTTP'),
      $evil: `${issuer}/evil`,
      $oldnonce: this.oldNonce,
      $sub: sub,
      $sid: sid,
      $nonce: nonce,
    }
    return value in known ? known[value] : value
  }

  async handle(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const url = new URL(req.url ?? '/', this.issuer)
    let body = ''
    for await (const chunk of req) body += String(chunk)
    const path = url.pathname === '/.well-known/openid-configuration' ? '/discovery' : url.pathname
    this.#hit(path.startsWith('/evil') ? 'evil' : path.slice(1))
    if (path === '/discovery') return this.#respond(res, this.#metadata(), this.bends.discovery)
    if (path === '/jwks') return this.#respond(res, { keys: this.#jwks() }, this.bends.jwks)
    if (path === '/evil/jwks') return this.#respond(res, { keys: [keys['evil']?.jwk] })
    if (path === '/authorize') return this.#authorize(url.searchParams, res)
    if (path === '/token') return this.#token(req, new URLSearchParams(body), res)
    if (path === '/userinfo') return this.#userinfo(req, url, res)
    if (path === '/revoke') return this.#respond(res, {}, this.bends.revoke)
    // A page of the provider that contains a frame.
    if (path === '/frame') {
      const src = (url.searchParams.get('src') ?? '').replaceAll('&', '&amp;')
      return void res.writeHead(200, { 'content-type': 'text/html' }).end(`<iframe src="${src}"></iframe>`)
    }
    if (path === '/end_session') return void res.writeHead(200, { 'content-type': 'text/html' }).end('signed out')
    res.writeHead(404).end()
  }

  /** The response, or the fault in its place. */
  #respond(res: ServerResponse, value: Json, bend: ResponseBend = {}, nonce?: string): void {
    const { status = 200, ctype = 'application/json', encoding } = bend
    // The connection closes when the test ends.
    if (bend.hang !== undefined) return
    if (bend.reset) return void res.socket?.destroy()
    if (bend.truncate) {
      res.writeHead(200, { 'content-type': ctype, 'content-length': '5000' }).write('{"a":', () => res.destroy())
      return
    }
    if (bend.redirect !== undefined) {
      const location = String(this.#filled('$evil')) + bend.redirect.slice('$evil'.length)
      res.writeHead(bend.status ?? 302, { location }).end()
      return
    }
    const headers = { 'content-type': ctype, ...(encoding === undefined ? {} : { 'content-encoding': encoding }) }
    const text =
      bend.body === undefined && bend.status === undefined
        ? JSON.stringify(bent(value, this.#filled(bend, nonce) as ResponseBend))
        : String(this.#filled(bend.body ?? '{}'))
    res.writeHead(status, headers).end(text)
  }

  #metadata(): Json {
    const endpoints = ['token', 'userinfo', 'revocation'].map((name) => [
      `${name}_endpoint`,
      `${this.issuer}/${name === 'revocation' ? 'revoke' : name}`,
    ])
    return {
      issuer: this.issuer,
      authorization_endpoint: `${this.issuer}/authorize`,
      end_session_endpoint: `${this.issuer}/end_session`,
      jwks_uri: `${this.issuer}/jwks`,
      ...Object.fromEntries(endpoints),
      ...metadata,
    }
  }

  #jwks(): readonly unknown[] {
    const good = (this.bends.publish ?? this.published).map((name) => keys[name]?.jwk ?? {})
    const rsa = good.filter(({ kty }) => kty === 'RSA')
    switch (this.bends.jwks?.mode) {
      case 'junk-plus-good':
        return [{ kty: 'XYZ', kid: 'q' }, { kty: 'OKP', crv: 'Ed9999', x: 'AA', kid: 'r' }, { kid: 'no-kty' }, ...good]
      case 'nokid':
        return rsa.map(({ kid: _, ...others }) => others)
      case 'single':
        return rsa.slice(0, 1)
      case 'enc-only':
        return good.map((key) => ({ ...key, use: 'enc', alg: undefined }))
      case 'oct':
        return [{ kty: 'oct', kid: 'key-a', k: part('public-knowledge') }]
      case 'many':
        return [...Array.from({ length: 5000 }, (_, index) => ({ ...good[0], kid: `pad-${index}` })), ...good]
      case 'private':
        return rsa.map((key) => ({ ...key, ...keys['a']?.privateKey.export({ format: 'jwk' }) }))
      case 'empty':
        return []
      default:
        return good
    }
  }

  #authorize(asked: URLSearchParams, res: ServerResponse): void {
    const values = Object.fromEntries(asked)
    this.asked = values
    this.#complainAboutRequest(asked, values)
    const { state = '', nonce, code_challenge, redirect_uri = '' } = values
    const code = random()
    this.#codes.set(code, { nonce, code_challenge, redirect_uri } as Grant)
    this.oldNonce = this.oldNonce === 'old-nonce' ? (nonce ?? '') : this.oldNonce
    const bend = this.bends.authz ?? {}
    const { error, error_description = 'denied' } = bend
    const response: [string, string][] =
      error === undefined
        ? [['code', code]]
        : [
            ['error', String(this.#filled(error))],
            ['error_description', error_description],
          ]
    response.push(['state', state], ['iss', this.issuer])
    const sent = response
      .filter(([name]) => !bend.del?.includes(name))
      .map(([name, value]) => [name, String(this.#filled(bend.set?.[name] ?? value))] as const)
      .map(([name, value]) => [name, name === bend.cut ? value.slice(0, -1) : value] as const)
    const all = [...sent, ...(bend.add ?? [])]
    if (values['response_mode'] === 'form_post' && !bend.asQuery) {
      res.writeHead(200, { 'content-type': 'text/html' }).end(selfPostingForm(redirect_uri, all))
      return
    }
    const back = new URL(redirect_uri)
    for (const [name, value] of all) back.searchParams.append(name, value)
    res.writeHead(302, { location: back.href }).end()
  }

  #complainAboutRequest(asked: URLSearchParams, values: Readonly<Record<string, string>>): void {
    const complain = (isRight: boolean, what: string) =>
      isRight || this.violations.push(`authorization request: ${what}`)
    complain(values['response_type'] === 'code', 'response_type is not code')
    complain((values['scope'] ?? '').split(' ').includes('openid'), 'scope lacks openid')
    complain(values['client_id'] === this.client_id, 'another client_id')
    complain(values['code_challenge_method'] === 'S256', 'no PKCE with S256')
    complain(/^[\w-]{43}$/.test(values['code_challenge'] ?? ''), 'no code_challenge')
    complain((values['state'] ?? '').length >= 16, 'state is short')
    complain((values['nonce'] ?? '').length >= 16, 'nonce is short')
    for (const name of new Set(asked.keys())) complain(asked.getAll(name).length === 1, `${name} is repeated`)
  }

  async #token(req: IncomingMessage, form: URLSearchParams, res: ServerResponse): Promise<void> {
    const isRefresh = form.get('grant_type') === 'refresh_token'
    this.#hit(isRefresh ? 'token_refresh' : 'token_code')
    const bend = isRefresh ? this.bends.refreshToken : this.bends.token
    this.lastTokenRequest = { form, authorization: req.headers.authorization ?? '' }
    if (!this.#isOurClient(req, form))
      return this.#respond(res, {}, { status: 401, body: '{"error":"invalid_client"}' })
    if (bend !== undefined && isFault(bend)) return this.#respond(res, {}, bend)
    const grant = isRefresh ? this.#redeemRefreshToken(form) : this.#redeemCode(form)
    if (grant === undefined) return this.#respond(res, {}, { status: 400, body: '{"error":"invalid_grant"}' })
    if (this.bends.rotateKeys === 'before-sign' && !isRefresh) this.rotateTo('b')

    const response = this.#tokenResponse(grant, isRefresh)
    if (isRefresh) {
      await pause(this.bends.refreshDelay ?? 0)
      if (this.bends.userinfoAfter) this.bends = { ...this.bends, userinfo: this.bends.userinfoAfter }
    }
    this.#respond(res, response, bend, grant.nonce)
  }

  #tokenResponse(grant: Grant, isRefresh: boolean): Json {
    const [access_token, refresh_token] = [random(24), random(24)]
    const { expiresIn = 3600, noRefreshIdToken, noRotate, refreshIdToken, idToken } = this.bends
    const response: Json = { access_token, token_type: 'Bearer', expires_in: expiresIn, scope: 'openid', refresh_token }
    if (!isRefresh || !noRefreshIdToken)
      response['id_token'] = this.idToken({ ...grant, access_token }, isRefresh ? refreshIdToken : idToken)
    if (isRefresh && noRotate) delete response['refresh_token']
    else this.#refreshTokens.set(refresh_token, grant)
    const { big } = this.bends.token ?? {}
    if (big !== undefined) response['pad'] = 'x'.repeat(big)
    this.lastToken = { ...response }
    return response
  }

  rotateTo(key: string): void {
    this.active = key
    this.published = [key]
  }

  #isOurClient({ headers: { authorization } }: IncomingMessage, form: URLSearchParams): boolean {
    const basic = /^Basic (.+)$/.exec(authorization ?? '')?.[1]
    const [id, secret] =
      basic === undefined
        ? [form.get('client_id'), form.get('client_secret')]
        : Buffer.from(basic, 'base64')
            .toString()
            .split(':')
            .map((text) => decodeURIComponent(text.replaceAll('+', ' ')))
    if (basic !== undefined && form.has('client_secret'))
      this.violations.push('token: two ways of client authentication')
    const isOurs = id === this.client_id && secret === this.client_secret
    if (!isOurs) this.violations.push('token: client authentication failed')
    return isOurs
  }

  #redeemCode(form: URLSearchParams): Grant | undefined {
    const code = form.get('code') ?? ''
    const grant = this.#codes.get(code)
    this.#codes.delete(code)
    const verifier = form.get('code_verifier') ?? ''
    if (grant === undefined) {
      this.#hit('code_reuse')
      return undefined
    }
    if (!/^[\w.~-]{43,128}$/.test(verifier)) this.violations.push('token: code_verifier has the wrong form')
    if (form.get('redirect_uri') !== grant.redirect_uri) this.violations.push('token: another redirect_uri')
    return createHash('sha256').update(verifier).digest('base64url') === grant.code_challenge ? grant : undefined
  }

  #redeemRefreshToken(form: URLSearchParams): Grant | undefined {
    const token = form.get('refresh_token') ?? ''
    const grant = this.#refreshTokens.get(token)
    if (grant === undefined) {
      if (this.#spent.has(token)) this.#hit('refresh_reuse')
      return undefined
    }
    if (!this.bends.noRotate) {
      this.#refreshTokens.delete(token)
      this.#spent.add(token)
    }
    return { ...grant, isRefresh: true }
  }

  #userinfo({ headers: { authorization = '' } }: IncomingMessage, url: URL, res: ServerResponse): void {
    if (url.searchParams.has('access_token')) this.violations.push('userinfo: the access token stands in the query')
    if (!/^Bearer \S+$/i.test(authorization)) this.violations.push('userinfo: no bearer token')
    const many = Object.fromEntries(
      Array.from({ length: this.bends.userinfo?.many ?? 0 }, (_, index) => [`c${index}`, 'v'.repeat(40)]),
    )
    const person = { email: 'alice@example.com', email_verified: true, name: 'Alice', preferred_username: 'alice' }
    const bend = this.bends.userinfo
    // Placeholders also stand inside a text.
    const body = bend?.body?.replaceAll('"$sub"', JSON.stringify(this.sub))
    const withBody = body === undefined ? bend : { ...bend, body }
    this.#respond(res, { sub: this.sub, ...person, groups: ['dev', 'ops'], ...many }, withBody)
  }

  #hit(what: string): void {
    this.#hits.set(what, this.hits(what) + 1)
  }
}

/** OAuth 2.0 Form Post Response Mode §2. */
function selfPostingForm(action: string, fields: readonly (readonly [string, string])[]): string {
  const text = (value: string) => value.replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll('<', '&lt;')
  const inputs = fields.map(([name, value]) => `<input type="hidden" name="${text(name)}" value="${text(value)}">`)
  return `<!doctype html><body onload="document.forms[0].submit()"><form method="post" action="${text(action)}">${inputs.join('')}</form>`
}

/** The action and the fields of a form of the provider, as a browser posts them. */
export function readForm(page: string): { readonly action: string; readonly body: string } {
  const plain = (value = '') => value.replaceAll('&quot;', '"').replaceAll('&lt;', '<').replaceAll('&amp;', '&')
  const action = plain(/<form[^>]* action="([^"]*)"/.exec(page)?.[1])
  const fields = [...page.matchAll(/name="([^"]*)" value="([^"]*)"/g)].map(([, name, value]) => [
    plain(name),
    plain(value),
  ])
  return { action, body: new URLSearchParams(fields as [string, string][]).toString() }
}

/** Whether the fault replaces the response. Then no code is redeemed. */
function isFault({ status, body, redirect, hang, reset, truncate }: ResponseBend): boolean {
  return [status, body, redirect, hang, reset, truncate].some((bend) => bend !== undefined)
}
