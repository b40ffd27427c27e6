// A toy OpenID Provider, for trying out and for tests: real protocol, people without passwords,
// everything in memory.
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http'
import type Provider from 'oidc-provider'
import type { AdapterPayload } from 'oidc-provider'
import { OperatorError, reason } from '../core/errors.ts'
import { randomToken } from '../core/random.ts'
import type { Markup } from './html.ts'
import { close, listen, readForm, redirect, sendHtml, sendJson } from './http.ts'
import { demoPeople, fullName } from './people.ts'
import { configuration, personIn, withConsent, type DemoProviderOptions } from './provider-configuration.ts'
import { messagePage, pageHeaders, peoplePage, sessionsPage, type EndingRow } from './provider-pages.ts'
import { ProviderStore } from './provider-store.ts'

export type { DemoProviderOptions }

export interface DemoSession {
  readonly sid: string
  readonly sub: string
  readonly name: string
  readonly since: Date
}

/** What came of a logout token. */
export type LogoutDelivery =
  | { readonly kind: 'answered'; readonly status: number }
  | { readonly kind: 'unreachable'; readonly why: string }
  | { readonly kind: 'no_session' }

export interface DemoProvider {
  /** As it stands in the tokens: without a slash at the end. */
  readonly issuer: string
  /** Where it listens; another place than the issuer when something stands before it. */
  readonly address: URL
  sessions(): readonly DemoSession[]
  /**
   * Ends a session as an administrator does: its tokens stop working, then a logout token is
   * delivered.
   */
  endSession(sid: string): Promise<LogoutDelivery>
  /**
   * A logout token that is delivered to nobody; without a `sid` it is about all sessions of the
   * person.
   */
  logoutToken(about: { readonly sub: string; readonly sid?: string }): Promise<string>
  /**
   * Ends a session as its expiry does: its tokens stop working, and nobody is told. False: there
   * was none.
   */
  expireSession(sid: string): boolean
  close(): Promise<void>
}

const listener = { what: 'The demo provider', setting: 'provider.issuer' }

/**
 * Starts the provider. A browser signs in by choosing a person; a script follows the redirects to
 * `/sign-in/UID` and posts `person=SUB` there. `GET /` lists the sessions, `DEBUG=oidc-provider:*`
 * tells why a request was refused.
 * @throws {OperatorError} when the port is taken, or the host is not loopback
 */
export async function startDemoProvider(options: DemoProviderOptions): Promise<DemoProvider> {
  let answer: RequestListener = (_request, response) => void response.writeHead(503).end()
  const server = createServer((request, response) => answer(request, response))
  const address = await listen(server, listener, options.host, options.port)
  try {
    const provider = await RunningProvider.create(originOf(options.issuer ?? address), options)
    answer = provider.answer
    return {
      issuer: provider.issuer,
      address,
      sessions: () => provider.sessions(),
      endSession: (sid) => provider.endSession(sid),
      expireSession: (sid) => provider.expireSession(sid),
      logoutToken: ({ sub, sid }) => provider.logoutToken(sub, sid),
      close: () => close(server),
    }
  } catch (error) {
    await close(server)
    throw error
  }
}

function originOf(issuer: URL): string {
  if (issuer.protocol === 'http:' && issuer.href === `${issuer.origin}/`) return issuer.origin
  throw new OperatorError(`The demo provider's issuer is a plain origin like http://127.0.0.1:8081, not ${issuer.href}`)
}

class RunningProvider {
  readonly issuer: string
  readonly #options: DemoProviderOptions
  readonly #store: ProviderStore
  readonly #oidc: Provider
  readonly #protocol: ReturnType<Provider['callback']>
  readonly #endings: EndingRow[] = []

  static async create(issuer: string, options: DemoProviderOptions): Promise<RunningProvider> {
    const { default: OidcProvider, interactionPolicy } = await loadOidcProvider()
    const store = new ProviderStore()
    const policy = interactionPolicy.base()
    // Consent is given by grantAll(); the prompt stays known, because `prompt=consent` is asked for
    // by withConsent().
    policy.get('consent')?.checks.clear()
    const oidc = new OidcProvider(issuer, configuration(options, store, policy))
    return new RunningProvider(issuer, options, store, oidc)
  }

  constructor(issuer: string, options: DemoProviderOptions, store: ProviderStore, oidc: Provider) {
    this.issuer = issuer
    this.#options = options
    this.#store = store
    this.#oidc = oidc
    this.#protocol = oidc.callback()
  }

  readonly answer: RequestListener = (request, response) => {
    this.#route(request, response).catch((error: unknown) => {
      if (response.headersSent) return void response.destroy()
      if (error instanceof Error && error.name === 'SessionNotFound') return sendPage(response, 400, signInOver)
      sendPage(response, 500, messagePage('That did not work', reason(error)))
    })
  }

  async #route(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', this.issuer)
    const action = `${request.method} ${url.pathname.replace(/^\/sign-in\/[\w-]+$/, '/sign-in/UID')}`
    switch (action) {
      case 'GET /':
        return sendPage(response, 200, sessionsPage(this.sessions(), this.#endings))
      case 'POST /sessions/end':
        return this.#endByButton(request, response)
      case 'GET /sign-in/UID':
        return this.#askWho(request, response)
      case 'POST /sign-in/UID':
        return this.#signIn(request, response)
      case 'GET /oauth/logout':
        return this.#logoutByBrowser(url.searchParams, response)
      case 'POST /oauth/logout':
        return this.#logoutByServer(request, response)
      case 'GET /oauth/authorize':
        request.url = withConsent(url)
        return this.#protocol(request, response)
      default:
        return this.#protocol(request, response)
    }
  }

  // Sessions

  sessions(): readonly DemoSession[] {
    return this.#store.sessions().flatMap((stored) => this.#described(stored) ?? [])
  }

  async endSession(sid: string): Promise<LogoutDelivery> {
    const ended = this.#remove(sid)
    if (!ended) return { kind: 'no_session' }
    const delivery = await this.#deliverLogoutToken(ended)
    this.#note(ended, `ended here; ${inWords(delivery)}`)
    return delivery
  }

  expireSession(sid: string): boolean {
    const ended = this.#remove(sid)
    if (ended) this.#note(ended, 'expired; nobody is told')
    return ended !== undefined
  }

  #remove(sid: string): DemoSession | undefined {
    for (const stored of this.#store.sessions()) {
      const session = this.#described(stored)
      if (session?.sid !== sid) continue
      this.#store.removeSession(stored)
      return session
    }
    return undefined
  }

  #described({ accountId: sub, authorizations, loginTs }: AdapterPayload): DemoSession | undefined {
    const sid = authorizations?.[this.#options.client_id]?.sid
    if (sub === undefined || sid === undefined) return undefined
    const person = personIn(this.#options, sub)
    return { sid, sub, name: person ? fullName(person) : sub, since: new Date((loginTs ?? 0) * 1000) }
  }

  #note({ name }: DemoSession, how: string): void {
    this.#endings.unshift({ name, at: new Date(), how })
    this.#endings.length = Math.min(this.#endings.length, 5)
  }

  /** OIDC Back-Channel Logout 1.0 §2.5 */
  async #deliverLogoutToken({ sub, sid }: DemoSession): Promise<LogoutDelivery> {
    const logout_token = await this.logoutToken(sub, sid)
    try {
      const answered = await fetch(this.#options.backchannel_logout_uri, {
        method: 'POST',
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
        body: new URLSearchParams({ logout_token }).toString(),
        redirect: 'manual',
        signal: AbortSignal.timeout(5_000),
      })
      await answered.body?.cancel()
      return { kind: 'answered', status: answered.status }
    } catch (error) {
      return { kind: 'unreachable', why: reason(error) }
    }
  }

  /**
   * OIDC Back-Channel Logout 1.0 §2.4; `iss`, `aud`, `iat`, `exp` and `typ` are set where it is
   * signed.
   */
  async logoutToken(sub: string, sid?: string): Promise<string> {
    const client = await this.#client()
    const token = new this.#oidc.IdToken({}, { client })
    token.set('sub', sub)
    if (sid !== undefined) token.set('sid', sid)
    token.set('jti', randomToken(16))
    token.set('events', { 'http://schemas.openid.net/event/backchannel-logout': {} })
    return token.issue({ use: 'logout' })
  }

  async #client() {
    const client = await this.#oidc.Client.find(this.#options.client_id)
    if (!client) throw new Error('the client is not registered')
    return client
  }

  async #endByButton(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const form = await readForm(request)
    await this.endSession(form?.get('sid') ?? '')
    redirect(response, '/')
  }

  // Signing in

  async #askWho(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { uid } = await this.#oidc.interactionDetails(request, response)
    const people = this.#options.people ?? demoPeople
    sendPage(response, 200, peoplePage(people, `/sign-in/${uid}`, this.#options.client_id))
  }

  async #signIn(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const form = await readForm(request)
    const person = personIn(this.#options, form?.get('person') ?? '')
    if (!person && !form?.has('cancel'))
      return sendPage(response, 400, messagePage('Nobody was chosen', 'Please go back.'))

    const result = person
      ? { login: { accountId: person.sub } }
      : { error: 'access_denied', error_description: 'the person cancelled the sign-in' }
    await this.#oidc.interactionFinished(request, response, result, { mergeWithLastSubmission: false })
  }

  // Signing out, begun by the application: no logout token is sent to it.

  /**
   * OIDC RP-Initiated Logout 1.0 §2, without asking the person: the application has asked already.
   */
  async #logoutByBrowser(query: URLSearchParams, response: ServerResponse): Promise<void> {
    const sid = await this.#sidOfHint(query.get('id_token_hint'))
    if (sid === undefined)
      return sendPage(response, 400, messagePage('Not signed out', 'The id_token_hint is not valid.'))

    const back = query.get('post_logout_redirect_uri')
    if (back !== null && !(await this.#client()).postLogoutRedirectUriAllowed(back))
      return sendPage(response, 400, messagePage('Not signed out', 'The post_logout_redirect_uri is not registered.'))

    this.#endByApplication(sid)
    if (back === null) return sendPage(response, 200, messagePage('Signed out', 'You can close this window.'))
    redirect(response, withState(back, query.get('state')))
  }

  /** Without a browser: nobody is sent anywhere. */
  async #logoutByServer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const form = await readForm(request)
    const sid = await this.#sidOfHint(form?.get('id_token_hint') ?? null)
    if (sid === undefined)
      return sendJson(response, 400, {
        error: 'invalid_request',
        error_description: 'id_token_hint is missing or invalid',
      })

    this.#endByApplication(sid)
    sendJson(response, 200, {})
  }

  #endByApplication(sid: string): void {
    const ended = this.#remove(sid)
    if (ended) this.#note(ended, 'ended by the application')
  }

  /** An expired ID Token is still a hint: it only says whose session is meant. */
  async #sidOfHint(id_token_hint: string | null): Promise<string | undefined> {
    if (id_token_hint === null) return undefined
    const client = await this.#client()
    const hint = await this.#oidc.IdToken.validate(id_token_hint, client).catch(() => undefined)
    const sid = hint?.payload['sid']
    return typeof sid === 'string' ? sid : undefined
  }
}

const signInOver = messagePage(
  'This sign-in is over',
  'It was completed, or it took too long. Please go back to the application and start again.',
)

function sendPage(response: ServerResponse, status: number, markup: Markup): void {
  sendHtml(response, status, markup, pageHeaders)
}

function inWords(delivery: LogoutDelivery): string {
  if (delivery.kind === 'answered') return `the application answered the logout token with ${delivery.status}`
  return delivery.kind === 'unreachable' ? `the application could not be told: ${delivery.why}` : 'there was no session'
}

function withState(uri: string, state: string | null): string {
  const url = new URL(uri)
  if (state !== null) url.searchParams.set('state', state)
  return url.href
}

let oidcProvider: Promise<typeof import('oidc-provider')> | undefined

/**
 * Loaded when it is needed, because it is not installed in production; and quietly, because Node.js
 * 20 runs it well.
 */
function loadOidcProvider(): Promise<typeof import('oidc-provider')> {
  oidcProvider ??= quietly('Unsupported runtime', () => import('oidc-provider'))
  return oidcProvider
}

async function quietly<T>(notice: string, load: () => Promise<T>): Promise<T> {
  const { warn } = console
  console.warn = (...line: unknown[]) => (String(line[0]).includes(notice) ? undefined : warn(...line))
  return load().finally(() => (console.warn = warn))
}
