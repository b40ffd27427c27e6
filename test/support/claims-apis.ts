// Programs that respond as the APIs of providers are documented.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { TestContext } from 'node:test'
import { sendJson } from './signing-provider.ts'

type Respond = (req: IncomingMessage, res: ServerResponse, url: URL) => void

export interface ApiServer {
  /** Without a slash at the end. */
  readonly origin: string
  readonly requests: readonly { readonly url: string; readonly headers: IncomingMessage['headers'] }[]
  /** Replaces the responses. */
  respond(respond: Respond): void
}

export async function startApi(t: TestContext, respond: Respond): Promise<ApiServer> {
  const requests: { url: string; headers: IncomingMessage['headers'] }[] = []
  const server = createServer((req, res) => {
    requests.push({ url: req.url ?? '', headers: req.headers })
    respond(req, res, new URL(req.url ?? '/', origin))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  return { origin, requests, respond: (other) => void (respond = other) }
}

/** One page of a list, and where the next one begins. */
function pageOf<T>(all: readonly T[], from: number, size: number): { readonly part: readonly T[]; next?: number } {
  return { part: all.slice(from, from + size), ...(from + size < all.length && { next: from + size }) }
}

/** Microsoft Graph, `GET /v1.0/me/transitiveMemberOf`. */
export function graph(ids: readonly string[], size = 2): Respond {
  return (_req, res, url) => {
    const { part, next } = pageOf(ids, Number(url.searchParams.get('$skiptoken') ?? 0), size)
    sendJson(res, {
      '@odata.context': `${url.origin}/v1.0/$metadata#directoryObjects(id)`,
      ...(next !== undefined && { '@odata.nextLink': `${url.origin}${url.pathname}?$skiptoken=${next}` }),
      value: part.map((id) => ({ '@odata.type': '#microsoft.graph.group', id })),
    })
  }
}

/** Google Cloud Identity, `memberships:searchDirectGroups`. It leaves out an empty list. */
export function cloudIdentity(emails: readonly string[], size = 2): Respond {
  return (_req, res, url) => {
    const { part, next } = pageOf(emails, Number(url.searchParams.get('pageToken') ?? 0), size)
    sendJson(res, {
      ...(part.length > 0 && { memberships: part.map((id) => ({ group: `groups/${id}`, groupKey: { id } })) }),
      ...(next !== undefined && { nextPageToken: String(next) }),
    })
  }
}

/** GitHub, GitLab and Okta: a list, and a Link header with further relations (RFC 8288). */
export function linked(elements: readonly unknown[], size = 2): Respond {
  return (_req, res, url) => {
    const { part, next } = pageOf(elements, Number(url.searchParams.get('page') ?? 0), size)
    const self = `<${url.origin}${url.pathname}?page=0>; rel="self"`
    if (next === undefined) res.setHeader('link', self)
    else res.setHeader('link', [self, `<${url.origin}${url.pathname}?page=${next}>; rel="next"`])
    sendJson(res, part)
  }
}
