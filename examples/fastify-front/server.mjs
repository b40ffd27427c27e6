// A Fastify server in front of the gateway: it ends TLS, serves routes of its own, and forwards all
// other requests. Needs the packages fastify and @fastify/http-proxy. See docs/forward-auth.md.
import { readFileSync } from 'node:fs'
import proxy from '@fastify/http-proxy'
import Fastify from 'fastify'

const port = 8443
const gateway = 'http://127.0.0.1:8080'

const app = Fastify({
  https: { cert: readFileSync('/run/tls/tls.crt'), key: readFileSync('/run/tls/tls.key') },
  logger: { level: 'warn' },
  // The gateway decides about unusual paths, and gets them as the client sent them.
  routerOptions: { ignoreDuplicateSlashes: false, caseSensitive: true },
})

app.get('/health', () => ({ ok: true }))

/** The gateway believes these fields of a trusted proxy, so those of a client do not pass. */
const ofProxies = new Set([
  'forwarded',
  'client-cert',
  'client-cert-chain',
  'x-request-id',
  'traceparent',
  'tracestate',
])

/** What the gateway trusts, in place of what a client says. Its address is in trusted_proxies. */
function forwarded(request, headers) {
  const others = Object.entries(headers).filter(([name]) => !ofProxies.has(name))
  return {
    ...Object.fromEntries(others),
    host: request.headers.host,
    'x-forwarded-for': request.socket.remoteAddress,
    'x-forwarded-host': request.headers.host,
    'x-forwarded-proto': 'https',
  }
}

/**
 * The fields of a client that opens a WebSocket. By default, only the cookie is forwarded, and the
 * gateway could not see that a page of another site opens it (Origin, Sec-Fetch-Site).
 */
function withoutHandshake(headers) {
  const isOfHandshake = (name) => /^(?:connection|upgrade|sec-websocket-.*)$/.test(name)
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !isOfHandshake(name)))
}

app.register(proxy, {
  upstream: gateway,
  // A request is sent once, because the gateway does not know whether it is repeated.
  replyOptions: { rewriteRequestHeaders: forwarded, retriesCount: 0 },
  undici: { bodyTimeout: 0, headersTimeout: 0 },
  websocket: true,
  wsClientOptions: { rewriteRequestHeaders: (_, request) => forwarded(request, withoutHandshake(request.headers)) },
})

await app.listen({ host: '127.0.0.1', port })
