// An OpenID Provider for the demo and for tests: the real protocol, people without passwords, all
// data in memory.
import type { JsonWebKey } from 'node:crypto'
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http'
import type Provider from 'oidc-provider'
import type { AdapterPayload, KoaContextWithOIDC } from 'oidc-provider'
import { OperatorError, reason } from '../../src/core/errors.ts'
import { randomToken } from '../../src/core/random.ts'
import { deliver, deliveryText, type Delivery } from './delivery.ts'
import type { Markup } from './html.ts'
import { close, listen, readForm, redirect, sendHtml, sendJson } from './http.ts'
import { demoPeople, fullName, type DemoPerson } from './people.ts'
import { configuration, grantedAcr, personIn, withConsent, type DemoProviderOptions } from './provider-configuration.ts'
import { messagePage, pageHeaders, peoplePage, sessionsPage, type EndingRow } from './provider-pages.ts'
import { ProviderStore } from './provider-store.ts'
import { pushAccountDisabled, ssfMetadata } from './security-events.ts'

export type { DemoProviderOptions }

export interface DemoSession {
  readonly sid: string
  readonly sub: string
  readonly name: string
  readonly since: Date
}

/** The result of delivering a Logout Token. */
export type LogoutDelivery = Delivery | { readonly kind: 'no_session' }

export interface DemoProvider {
  /** The issuer identifier in tokens, without a slash at the end. */
  readonly issuer: string
  /** The address on which it listens; differs from the issuer behind a proxy. */
  readonly address: URL
  sessions(): readonly DemoSession[]
  /** Ends a session as an administrator does: revokes its tokens, then delivers a Logout Token. */
  endSession(sid: string): Promise<LogoutDelivery>
  /**
   * Creates a Logout Token and does not deliver it. Without `sid` it is for all sessions of the
   * person.
   */
  logoutToken(about: { readonly sub: string; readonly sid?: string }): Promise<string>
  /**
   * Ends a session as expiry does: revokes its tokens and sends no Logout Token. False when there
   * is no such session.
   */
  expireSession(sid: string): boolean
  close(): Promise<void>
}

const listener = { what: 'The demo provider', setting: 'provider.issuer' }

/**
 * Starts the provider. A browser signs in by choosing a person; a script follows the redirects to
 * `/sign-in/UID` and posts `person=SUB` there. `GET /` lists the sessions. `DEBUG=oidc-provider:*`
 * logs why a request was rejected.
 * @throws {OperatorError} when the port is taken, or the host is not loopback
 */
export async function startDemoProvider(options: DemoProviderOptions): Promise<DemoProvider> {
  let handle: RequestListener = (_request, response) => void response.writeHead(503).end()
  const server = createServer((request, response) => handle(request, response))
  const address = await listen(server, listener, options.host, options.port)
  try {
    const provider = await RunningProvider.create(originOf(options.issuer ?? address), options)
    handle = provider.handle
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
  if (/^https?:$/.test(issuer.protocol) && issuer.href === `${issuer.origin}/`) return issuer.origin
  throw new OperatorError(
    `The issuer of the demo provider must be a plain origin such as http://127.0.0.1:8081, not ${issuer.href}`,
  )
}

interface RunningParts {
  readonly issuer: string
  readonly options: DemoProviderOptions
  readonly store: ProviderStore
  readonly oidc: Provider
  /** Signs security events. */
  readonly key: JsonWebKey | undefined
}

class RunningProvider {
  readonly issuer: string
  readonly #options: DemoProviderOptions
  readonly #store: ProviderStore
  readonly #oidc: Provider
  readonly #protocol: ReturnType<Provider['callback']>
  readonly #key: JsonWebKey | undefined
  readonly #endings: EndingRow[] = []
  readonly #disabled = new Set<DemoPerson>()

  static async create(issuer: string, options: DemoProviderOptions): Promise<RunningProvider> {
    // On demand, because production installations do not have it.
    const { default: OidcProvider, interactionPolicy } = await import('oidc-provider')
    const store = options.store ?? new ProviderStore()
    const policy = interactionPolicy.base()
    // grantAll() grants consent. The prompt itself stays, because withConsent() adds
    // `prompt=consent`.
    policy.get('consent')?.checks.clear()
    const isStronger = ({ oidc: { params, acr } }: KoaContextWithOIDC) => {
      const granted = grantedAcr(params ?? {})
      return granted !== undefined && granted !== acr
    }
    policy.get('login')?.checks.add(new interactionPolicy.Check('acr', 'a stronger sign-in is requested', isStronger))
    const base = configuration(options, store, policy)
    const adjusted = options.adjust?.(base) ?? base
    const oidc = new OidcProvider(issuer, adjusted)
    options.extend?.(oidc)
    // A proxy before the provider terminates TLS, and says so in X-Forwarded-Proto.
    oidc.proxy = issuer.startsWith('https:')
    return new RunningProvider({ issuer, options, store, oidc, key: adjusted.jwks?.keys[0] as JsonWebKey | undefined })
  }

  constructor({ issuer, options, store, oidc, key }: RunningParts) {
    this.issuer = issuer
    this.#options = options
    this.#store = store
    this.#oidc = oidc
    this.#key = key
    this.#protocol = oidc.callback()
  }

  readonly handle: RequestListener = (request, response) => {
    this.#route(request, response).catch((error: unknown) => {
      if (response.headersSent) return void response.destroy()
      if (error instanceof Error && error.name === 'SessionNotFound') return sendPage(response, 400, endedSignInPage)
      sendPage(response, 500, messagePage('The request failed', reason(error)))
    })
  }

  async #route(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', this.issuer)
    const action = `${request.method} ${url.pathname.replace(/^\/sign-in\/[\w-]+$/, '/sign-in/UID')}`
    switch (action) {
      case 'GET /':
        return sendPage(response, 200, sessionsPage(this.sessions(), [...this.#disabled], this.#endings))
      case 'GET /.well-known/ssf-configuration':
        return sendJson(response, 200, ssfMetadata(this.issuer))
      case 'POST /sessions/end':
        return this.#endByButton(request, response)
      case 'POST /accounts/disable':
        return this.#disableByButton(request, response)
      case 'POST /accounts/enable':
        return this.#enableByButton(request, response)
      case 'GET /sign-in/UID':
        return this.#showPeople(request, response)
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
    return this.#store.sessions().flatMap((stored) => this.#describe(stored) ?? [])
  }

  async endSession(sid: string): Promise<LogoutDelivery> {
    const ended = this.#remove(sid)
    if (!ended) return { kind: 'no_session' }
    const delivery = await this.#deliverLogoutToken(ended)
    this.#note(ended, `ended here; ${deliveryText(delivery, 'the Logout Token')}`)
    return delivery
  }

  expireSession(sid: string): boolean {
    const ended = this.#remove(sid)
    if (ended) this.#note(ended, 'expired; no Logout Token was sent')
    return ended !== undefined
  }

  #remove(sid: string): DemoSession | undefined {
    for (const stored of this.#store.sessions()) {
      const session = this.#describe(stored)
      if (session?.sid !== sid) continue
      this.#store.removeSession(stored)
      return session
    }
    return undefined
  }

  #describe({ accountId: sub, authorizations, loginTs }: AdapterPayload): DemoSession | undefined {
    const sid = authorizations?.[this.#options.client_id]?.sid
    if (sub === undefined || sid === undefined) return undefined
    const person = personIn(this.#options, sub)
    return { sid, sub, name: person ? fullName(person) : sub, since: new Date((loginTs ?? 0) * 1000) }
  }

  #note({ name }: Pick<DemoSession, 'name'>, how: string): void {
    this.#endings.unshift({ name, at: new Date(), how })
    this.#endings.length = Math.min(this.#endings.length, 5)
  }

  /** OIDC Back-Channel Logout 1.0 §2.5 */
  async #deliverLogoutToken({ sub, sid }: DemoSession): Promise<Delivery> {
    const logout_token = await this.logoutToken(sub, sid)
    return deliver(
      this.#options.backchannel_logout_uri,
      { 'content-type': 'application/x-www-form-urlencoded' },
      new URLSearchParams({ logout_token }).toString(),
    )
  }

  /**
   * OIDC Back-Channel Logout 1.0 §2.4. oidc-provider adds `iss`, `aud`, `iat`, `exp` and `typ` when
   * it signs the token.
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

  // Accounts

  /** Ends all sessions of the person, then tells the application. */
  async #disableByButton(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const person = await this.#personOfForm(request)
    if (person && !this.#disabled.has(person)) {
      this.#disabled.add(person)
      for (const { sid } of this.sessions().filter(({ sub }) => sub === person.sub)) this.#remove(sid)
      this.#note({ name: fullName(person) }, `account disabled; ${await this.#pushAccountDisabled(person)}`)
    }
    redirect(response, '/')
  }

  async #pushAccountDisabled({ sub }: DemoPerson): Promise<string> {
    const { eventReceiver } = this.#options
    if (eventReceiver === undefined || this.#key === undefined) return 'the application receives no security events'
    const delivery = await pushAccountDisabled(eventReceiver, { iss: this.issuer, sub, key: this.#key })
    return deliveryText(delivery, 'the security event')
  }

  async #enableByButton(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const person = await this.#personOfForm(request)
    if (person) this.#disabled.delete(person)
    redirect(response, '/')
  }

  async #personOfForm(request: IncomingMessage): Promise<DemoPerson | undefined> {
    const form = await readForm(request)
    return personIn(this.#options, form?.get('person') ?? '')
  }

  // Signing in

  async #showPeople(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { uid } = await this.#oidc.interactionDetails(request, response)
    const people = this.#options.people ?? demoPeople
    sendPage(response, 200, peoplePage(people, `/sign-in/${uid}`, this.#options.client_id))
  }

  async #signIn(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { params } = await this.#oidc.interactionDetails(request, response)
    const acr = grantedAcr(params)
    const form = await readForm(request)
    const person = personIn(this.#options, form?.get('person') ?? '')
    if (!person && !form?.has('cancel'))
      return sendPage(response, 400, messagePage('No person was chosen', 'Please go back and choose a person.'))

    if (person && this.#disabled.has(person))
      return sendPage(response, 403, messagePage('This account is disabled', disabledText(person, this.issuer)))
    const result = person
      ? { login: { accountId: person.sub, ...(acr !== undefined && { acr }) } }
      : { error: 'access_denied', error_description: 'the person cancelled the sign-in' }
    await this.#oidc.interactionFinished(request, response, result, { mergeWithLastSubmission: false })
  }

  // Sign-out that the application starts. The provider sends it no Logout Token.

  /**
   * OIDC RP-Initiated Logout 1.0 §2, without a confirmation page, because the person clicked
   * sign-out in the application.
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

  /** An end-session request of a server: responds without a redirect. */
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

  /**
   * The `sid` of a hint. An expired ID Token is accepted, because it only identifies the session.
   */
  async #sidOfHint(id_token_hint: string | null): Promise<string | undefined> {
    if (id_token_hint === null) return undefined
    const client = await this.#client()
    const hint = await this.#oidc.IdToken.validate(id_token_hint, client).catch(() => undefined)
    const sid = hint?.payload['sid']
    return typeof sid === 'string' ? sid : undefined
  }
}

const endedSignInPage = messagePage(
  'This sign-in has ended',
  'It was completed, or it took too long. Please go back to the application and start again.',
)

function disabledText(person: DemoPerson, issuer: string): string {
  return `${fullName(person)} cannot sign in. The account can be enabled again at ${issuer}/.`
}

function sendPage(response: ServerResponse, status: number, markup: Markup): void {
  sendHtml(response, status, markup, pageHeaders)
}

function withState(uri: string, state: string | null): string {
  const url = new URL(uri)
  if (state !== null) url.searchParams.set('state', state)
  return url.href
}
