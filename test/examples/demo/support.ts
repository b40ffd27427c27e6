import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { TestContext } from 'node:test'
import * as oidc from 'openid-client'
import { startDemoProvider, type DemoProvider } from '../../../examples/demo/provider.ts'

export const redirect_uri = 'http://127.0.0.1:8080/.gatehouse/callback'
export const post_logout_redirect_uri = 'http://127.0.0.1:8080/.gatehouse/signed-out'

export interface Application {
  readonly provider: DemoProvider
  readonly client: oidc.Configuration
  /** The contents that were posted to the back-channel logout receiver. */
  readonly received: URLSearchParams[]
}

/** A provider with a registered application. Its back-channel logout URI responds with `status`. */
export async function startApplication(t: TestContext, status = 200): Promise<Application> {
  const received: URLSearchParams[] = []
  const receive = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    let body = ''
    for await (const chunk of request) body += String(chunk)
    received.push(new URLSearchParams(body))
    response.writeHead(status).end()
  }
  const receiver = createServer((request, response) => void receive(request, response))
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve))
  t.after(() => receiver.close())

  const provider = await startDemoProvider({
    client_id: 'demo',
    client_secret: 'correct horse',
    redirect_uris: [redirect_uri],
    post_logout_redirect_uris: [post_logout_redirect_uri],
    backchannel_logout_uri: `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/backchannel-logout`,
    host: '127.0.0.1',
    port: 0,
  })
  t.after(() => provider.close())

  const authentication = oidc.ClientSecretBasic('correct horse')
  const client = await oidc.discovery(new URL(provider.issuer), 'demo', 'correct horse', authentication, {
    execute: [oidc.allowInsecureRequests],
  })
  return { provider, client, received }
}

/** A simple browser for the provider: stores cookies by path and follows no redirect by itself. */
export class Browser {
  readonly #cookies = new Map<string, { value: string; path: string }>()

  async fetch(url: URL, init: RequestInit = {}): Promise<Response> {
    const sent = [...this.#cookies].filter(([, { path }]) => url.pathname.startsWith(path))
    const cookie = sent.map(([name, { value }]) => `${name}=${value}`).join('; ')
    const response = await fetch(url, { ...init, redirect: 'manual', headers: { accept: 'text/html', cookie } })
    for (const line of response.headers.getSetCookie()) this.#keep(line)
    return response
  }

  #keep(line: string): void {
    const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
    const path = /; *path=([^;]+)/i.exec(line)?.[1] ?? '/'
    if (value === '') this.#cookies.delete(name)
    else this.#cookies.set(name, { value, path })
  }

  /**
   * Follows redirects and chooses `person` on the sign-in page. Stops at the first redirect that
   * leaves the provider and returns its target.
   */
  async goThrough(start: URL, person: string): Promise<URL> {
    let url = start
    let response = await this.fetch(url)
    for (let hops = 0; hops < 10; hops += 1) {
      const location = response.headers.get('location')
      if (location === null) {
        response = await this.fetch(url, { method: 'POST', body: new URLSearchParams({ person }) })
        continue
      }
      url = new URL(location, url)
      if (url.origin !== start.origin) return url
      response = await this.fetch(url)
    }
    throw new Error(`the sign-in goes in circles: ${url.href}`)
  }
}

export type Tokens = Awaited<ReturnType<typeof oidc.authorizationCodeGrant>>

/** Authorization code flow with PKCE, state and nonce. */
export async function signIn(
  { client }: Application,
  person: string,
  { scope = 'openid profile email offline_access', browser = new Browser() } = {},
): Promise<Tokens> {
  const pkceCodeVerifier = oidc.randomPKCECodeVerifier()
  const expectedState = oidc.randomState()
  const expectedNonce = oidc.randomNonce()
  const start = oidc.buildAuthorizationUrl(client, {
    redirect_uri,
    scope,
    state: expectedState,
    nonce: expectedNonce,
    code_challenge: await oidc.calculatePKCECodeChallenge(pkceCodeVerifier),
    code_challenge_method: 'S256',
  })
  const callback = await browser.goThrough(start, person)
  return oidc.authorizationCodeGrant(client, callback, { pkceCodeVerifier, expectedState, expectedNonce })
}
