import { randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { TestContext } from 'node:test'

/** A request for the sign-in of the application. */
export interface ReceivedSignIn {
  readonly method: string
  readonly url: string
  readonly headers: IncomingMessage['headers']
  readonly content: string
}

export interface SigningInApplication {
  readonly url: URL
  /** The passwords by name. */
  readonly passwords: Map<string, string>
  /** All sign-ins that were sent to it, with a right or a wrong password. */
  readonly attempts: ReceivedSignIn[]
  /** All other requests: method, path and query. */
  readonly requests: string[]
  /** The forms that signed-in people have sent: who, and the content. */
  readonly saved: (readonly [person: string, content: string])[]
  /** The people with a session, one entry for each. */
  readonly people: () => readonly string[]
  /** Ends all sessions. */
  endSessions(): void
  /** Replaces the response to a request; returns whether it did. */
  respond: (req: IncomingMessage, res: ServerResponse, content: string) => boolean
}

/** `redirect`: to the page with the form; `page`: the form at any path, as servlets have it. */
export type Asking = 'redirect' | 'page' | 'json' | 'basic'

/**
 * An application that signs people in only with its own form. The form has a token that belongs to
 * a cookie. A page says who is signed in.
 */
export async function startSigningInApplication(
  t: TestContext,
  asking: Asking = 'redirect',
): Promise<SigningInApplication> {
  const sessions = new Map<string, string>()
  const tokens = new Map<string, string>()
  const application: Omit<SigningInApplication, 'url'> = {
    passwords: new Map([
      ['jane', 'the password of jane'],
      ['noa', 'das Paßwort & of noa'],
    ]),
    attempts: [],
    requests: [],
    saved: [],
    people: () => [...sessions.values()],
    endSessions: () => sessions.clear(),
    respond: () => false,
  }
  const isRight = (name: string, password: string) => application.passwords.get(name) === password

  function showForm(res: ServerResponse, error = ''): void {
    const [browser, token] = [randomUUID(), randomUUID()]
    tokens.set(browser, token)
    res.writeHead(200, {
      'Content-Type': 'text/html; charset=utf-8',
      'Set-Cookie': [`browser=${browser}; Path=/; HttpOnly`],
    })
    res.end(`<!doctype html><title>Sign in</title><p>${error}<form method="post" action="/login">
      <input type="hidden" name="token" value="${token}"><label>Name <input name="user"></label>
      <label>Password <input type="password" name="pass"></label><button name="go" value="1">Sign in</button></form>`)
  }

  function signIn(req: IncomingMessage, res: ServerResponse, content: string): void {
    application.attempts.push({ method: req.method ?? '', url: req.url ?? '', headers: req.headers, content })
    const isJson = asking === 'json'
    const form = isJson ? undefined : new URLSearchParams(content)
    const sent = form === undefined ? (JSON.parse(content) as Record<string, string>) : Object.fromEntries(form)
    const { user = '', pass = '' } = sent
    const isForm = isJson || tokens.get(cookieOf(req, 'browser')) === sent['token']
    if (!isForm) return void res.writeHead(403).end('the token of the form is wrong')
    if (!isRight(user, pass)) return isJson ? void res.writeHead(401).end('{}') : showForm(res, 'Wrong password')
    const id = randomUUID()
    sessions.set(id, user)
    res.setHeader('Set-Cookie', [`APP=${id}; Path=/; HttpOnly`, 'theme=dark; Path=/'])
    if (isJson) res.setHeader('Content-Type', 'application/json').end(JSON.stringify({ token: `of.${id}` }))
    else res.writeHead(303, { Location: '/' }).end()
  }

  function ask(req: IncomingMessage, res: ServerResponse): void {
    if (asking === 'redirect')
      return void res.writeHead(302, { Location: `/login?next=${encodeURIComponent(req.url ?? '')}` }).end()
    if (asking === 'page') return showForm(res)
    res.writeHead(401, asking === 'basic' ? { 'WWW-Authenticate': 'Basic realm="Orders"' } : {}).end('sign in first')
  }

  function personOf(req: IncomingMessage): string | undefined {
    const [scheme, value = ''] = (req.headers.authorization ?? '').split(' ')
    if (scheme === 'Bearer') return sessions.get(value.replace('of.', ''))
    if (scheme !== 'Basic') return sessions.get(cookieOf(req, 'APP'))
    const [name = '', password = ''] = Buffer.from(value, 'base64').toString().split(':')
    application.attempts.push({ method: req.method ?? '', url: req.url ?? '', headers: req.headers, content: '' })
    return isRight(name, password) ? name : undefined
  }

  const server = createServer((req, res) => {
    const chunks: Buffer[] = []
    req.on('data', (chunk: Buffer) => chunks.push(chunk))
    req.on('end', () => {
      const content = Buffer.concat(chunks).toString()
      const path = (req.url ?? '').replace(/\?.*/s, '')
      if (application.respond(req, res, content)) return
      if (path === '/login' && req.method === 'POST') return signIn(req, res, content)
      application.requests.push(`${req.method} ${req.url}`)
      if (path === '/login') return showForm(res)
      const person = personOf(req)
      if (person === undefined) return ask(req, res)
      if (req.method === 'POST') application.saved.push([person, content])
      res.setHeader('Content-Type', 'text/html; charset=utf-8')
      res.end(
        `<!doctype html><title>Orders</title><h1>Orders of ${person}</h1><form method="post" action="/orders"><label>Item <input name="item"></label><button>Order</button></form>`,
      )
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => void server.close().closeAllConnections())
  return Object.assign(application, { url: new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`) })
}

function cookieOf(req: IncomingMessage, name: string): string {
  return new RegExp(`(?:^|; )${name}=([^;]*)`).exec(req.headers.cookie ?? '')?.[1] ?? ''
}
