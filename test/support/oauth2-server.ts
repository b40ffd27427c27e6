// A program that responds as an OAuth 2.0 provider without OpenID Connect documents it.
import { createHash, randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { TestContext } from 'node:test'
import { type ApiServer, startApi } from './claims-apis.ts'
import { sendJson } from './signing-provider.ts'

type Json = Readonly<Record<string, unknown>>

/** What a provider documents. The paths begin with "/". */
export interface Documented {
  readonly authorize: string
  readonly token: string
  /** Whether it verifies `code_verifier`. */
  readonly pkce: boolean
  readonly auth: 'basic' | 'form'
  /** What a token response has beside the tokens. */
  readonly tokens: Json
  /** The response to a refresh token that is no longer valid. */
  readonly rejected: readonly [status: number, body: Json]
  /** The response of an API to another token. */
  readonly unauthorized: Json
  /** The responses of the APIs, by path. */
  readonly apis: Readonly<Record<string, unknown>>
}

export interface OAuth2Server extends ApiServer {
  /** The grant types of the token requests that were granted. */
  readonly granted: readonly string[]
  revoke(): void
}

/** Refresh tokens can be used once. */
export async function startOAuth2(t: TestContext, documented: Documented, secret: string): Promise<OAuth2Server> {
  const codes = new Map<string, URLSearchParams>()
  const [accessTokens, refreshTokens] = [new Set<string>(), new Set<string>()]
  const granted: string[] = []

  const isProved = (form: URLSearchParams, asked: URLSearchParams) => {
    const hash = createHash('sha256')
      .update(form.get('code_verifier') ?? '')
      .digest('base64url')
    const isRight = asked.get('redirect_uri') === form.get('redirect_uri')
    return isRight && (!documented.pkce || hash === asked.get('code_challenge'))
  }
  const isGranted = (form: URLSearchParams) => {
    if (form.get('grant_type') === 'refresh_token') return refreshTokens.delete(form.get('refresh_token') ?? '')
    const asked = codes.get(form.get('code') ?? '')
    codes.delete(form.get('code') ?? '')
    return asked !== undefined && isProved(form, asked)
  }
  const issue = (req: IncomingMessage, res: ServerResponse, form: URLSearchParams) => {
    const basic = Buffer.from((req.headers.authorization ?? '').slice('Basic '.length), 'base64').toString()
    // RFC 6749 §2.3.1.
    const ofBasic = new URLSearchParams(`secret=${basic.split(':')[1] ?? ''}`).get('secret')
    const given = documented.auth === 'basic' ? ofBasic : form.get('client_secret')
    if (given !== secret) return sendJson(res, { error: 'invalid_client' }, 401)
    if (!isGranted(form)) return sendJson(res, documented.rejected[1], documented.rejected[0])
    granted.push(form.get('grant_type') ?? '')
    const [access_token, refresh_token] = [randomUUID(), randomUUID()]
    accessTokens.add(access_token)
    refreshTokens.add(refresh_token)
    return sendJson(res, { access_token, refresh_token, ...documented.tokens })
  }

  const api = await startApi(t, (req, res, url) => {
    if (url.pathname === documented.authorize) {
      const code = randomUUID()
      codes.set(code, url.searchParams)
      const back = new URL(url.searchParams.get('redirect_uri') ?? '')
      for (const [name, value] of Object.entries({ code, state: url.searchParams.get('state') ?? '' }))
        back.searchParams.set(name, value)
      return res.writeHead(302, { location: back.href }).end()
    }
    if (url.pathname === documented.token) {
      let body = ''
      req.setEncoding('utf8').on('data', (part: string) => (body += part))
      return req.on('end', () => issue(req, res, new URLSearchParams(body)))
    }
    if (!accessTokens.has((req.headers.authorization ?? '').slice('Bearer '.length)))
      return sendJson(res, documented.unauthorized, 401)
    const found = documented.apis[url.pathname]
    return found === undefined ? sendJson(res, { message: 'Not Found' }, 404) : sendJson(res, found)
  })
  const revoke = () => {
    accessTokens.clear()
    refreshTokens.clear()
  }
  return { ...api, granted, revoke }
}
