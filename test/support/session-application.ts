import { randomUUID } from 'node:crypto'
import { createServer, type IncomingHttpHeaders, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { TestContext } from 'node:test'

/** What the application shows of a request. */
export interface Shown {
  /** The person who was the first to use this session of the application. */
  readonly owner: string
  readonly visits: number
  /** The `Cookie` field as it arrived. */
  readonly cookie: string
}

/** A request for a path that ends in `/logout`. */
export interface ReceivedLogout {
  readonly method: string
  /** Path and query. */
  readonly url: string
  readonly headers: IncomingHttpHeaders
  /** The person whose session of the application has ended; empty when there was none. */
  readonly owner: string
}

export interface SessionApplication {
  readonly url: URL
  /** How many sessions it has begun. */
  readonly begun: () => number
  /** The people who have a session of the application, one entry for each session. */
  readonly owners: () => readonly string[]
  readonly logouts: ReceivedLogout[]
  /**
   * The statuses of the next responses to `/logout`, in order, or when to send a response of
   * success.
   */
  readonly nextLogouts: (number | Promise<void>)[]
}

/**
 * An application with a session of its own, as servlets and PHP have it: the first request without
 * a known `JSESSIONID` begins one for the person in `X-Remote-User`, and from then on the cookie
 * alone says who it is.
 *
 * Each parameter `set` is one more `Set-Cookie` of the response; `~9` in it becomes 9 letters. A
 * path below `/quiet/` begins no session. A path that ends in `/logout` ends the session, if its
 * response is a success.
 */
export async function startSessionApplication(
  t: TestContext,
  /** Runs before a response is sent. */
  beforeResponse: (url: URL) => Promise<void> = () => Promise.resolve(),
): Promise<SessionApplication> {
  const sessions = new Map<string, { readonly owner: string; visits: number }>()
  let begun = 0
  const logouts: ReceivedLogout[] = []
  const nextLogouts: (number | Promise<void>)[] = []
  const server = createServer((req, res) => {
    const url = new URL(req.url ?? '/', 'http://application')
    if (url.pathname.endsWith('/logout')) {
      const next = nextLogouts.shift() ?? 302
      const id = idOf(req)
      const { method = '', headers } = req
      logouts.push({ method, url: req.url ?? '', headers, owner: sessions.get(id)?.owner ?? '' })
      const respond = (status: number) => {
        if (status < 400) sessions.delete(id)
        res.writeHead(status, { Location: '/after-logout', 'Set-Cookie': 'JSESSIONID=; Max-Age=0' }).end('signed out')
      }
      if (typeof next === 'number') respond(next)
      else void next.then(() => respond(302))
      return
    }
    const [session, begins] = sessionOf(req)
    session.visits += 1
    const shown: Shown = { owner: session.owner, visits: session.visits, cookie: req.headers.cookie ?? '' }
    const set = url.searchParams
      .getAll('set')
      .map((cookie) => cookie.replace(/~(\d+)/, (_, length) => 'x'.repeat(Number(length))))
    const cookies = [...begins, ...set]
    void beforeResponse(url).then(() => {
      res.setHeader('Content-Type', 'application/json')
      if (cookies.length > 0) res.setHeader('Set-Cookie', cookies)
      res.end(JSON.stringify(shown))
    })
  })
  server.on('upgrade', (req, socket) => {
    const [, begins] = sessionOf(req)
    const fields = begins.map((cookie) => `Set-Cookie: ${cookie}\r\n`).join('')
    socket.end(`HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n${fields}\r\n`)
  })

  function sessionOf(req: IncomingMessage) {
    const id = idOf(req)
    const known = sessions.get(id)
    if (known !== undefined || req.url?.startsWith('/quiet/') === true)
      return [known ?? { owner: '', visits: 0 }, []] as const
    const session = { owner: String(req.headers['x-remote-user'] ?? ''), visits: 0 }
    const fresh = randomUUID()
    sessions.set(fresh, session)
    begun += 1
    return [session, [`JSESSIONID=${fresh}; Path=/; HttpOnly`]] as const
  }

  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => void server.close().closeAllConnections())
  const url = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  return {
    url,
    begun: () => begun,
    owners: () => [...sessions.values()].map(({ owner }) => owner),
    logouts,
    nextLogouts,
  }
}

function idOf(req: IncomingMessage): string {
  return /(?:^|; )JSESSIONID=([^;]*)/.exec(req.headers.cookie ?? '')?.[1] ?? ''
}
