import { stringify } from 'yaml'
import { isLoopback, parseHttpUrl, parseOrigin } from '../config/addresses.ts'
import { parseRedisUrl } from '../config/build/redis.ts'
import { offlineAccess, providerKind } from '../config/provider-kind.ts'

/** What has to be known for a first configuration. */
export interface Answers {
  readonly issuer: string
  readonly client_id: string
  /** Where browsers reach the gateway. */
  readonly url: string
  readonly upstream: string
  /** `memory`, or a redis:// or rediss:// URL. */
  readonly store: string
}

/** A question, what a good answer to it is, and one that is taken when nothing is answered. */
export interface Question {
  readonly name: keyof Answers
  readonly text: string
  readonly example: string
  readonly fallback?: string
  /** @throws {SyntaxError} which says what is wrong with an answer */
  readonly check: (answer: string) => void
}

export const questions: readonly Question[] = [
  {
    name: 'issuer',
    text: 'The issuer of your OpenID Provider, exactly as its tokens spell it',
    example: 'https://id.example.com',
    check: (answer) => {
      const url = parseHttpUrl(answer, 'https://id.example.com')
      if (url.protocol === 'http:' && !isLoopback(url.hostname))
        throw new SyntaxError('must be https, but for a provider on this machine')
      if (url.pathname.includes('/.well-known/')) throw new SyntaxError('ends before /.well-known/')
    },
  },
  {
    name: 'client_id',
    text: 'What this gateway is called there (client_id)',
    example: 'orders',
    check: (answer) => {
      if (answer.trim() === '' || /\p{Cc}/u.test(answer)) throw new SyntaxError('must not be empty')
    },
  },
  {
    name: 'url',
    text: 'Where browsers will reach it',
    example: 'https://orders.example.com',
    check: (answer) => void parseOrigin(answer),
  },
  {
    name: 'upstream',
    text: 'Where the application listens',
    example: 'http://127.0.0.1:3000',
    check: (answer) => void parseOrigin(answer, 'http://127.0.0.1:3000'),
  },
  {
    name: 'store',
    text: 'Where sessions are kept: memory (a restart signs everybody out), or the URL of a Redis',
    example: 'redis://redis:6379',
    fallback: 'memory',
    check: (answer) => {
      if (answer !== 'memory') parseRedisUrl(answer)
    },
  },
]

/** The environment variables that the file names, and how a shell is given each. */
export function exportsFor({ store }: Answers): readonly string[] {
  const client = "export CLIENT_SECRET='…'   # from the provider"
  return store === 'memory' ? [client] : [client, 'export SESSION_KEY="$(openssl rand -base64 32)"   # keep it']
}

/**
 * A first configuration in YAML, every setting of it explained; good for `gatehouse check` as it
 * is.
 */
export function firstFile({ issuer, client_id, url, upstream, store }: Answers): string {
  const { hostname, protocol, port } = new URL(url)
  const behindTls = protocol === 'https:'
  // The application may be on the usual port already.
  const ownPort = behindTls ? (new URL(upstream).port === '8080' ? '8081' : '8080') : port || '80'
  return `# yaml-language-server: $schema=gateway.schema.json
# The line above lets editors complete and check this file. All settings: docs/configuration.md.

# The version of this file's format.
version: 1

# Where the gateway listens.${behindTls ? ' It speaks http here: TLS ends in the proxy before it.' : ''}
listen: ${isLoopback(hostname) ? '127.0.0.1' : '0.0.0.0'}:${ownPort}
${behindTls ? tlsText : ''}
# Where browsers reach it.
external_url: ${scalar(url)}

# Health, readiness and metrics, on an address of their own that browsers cannot reach.
# admin: { listen: 127.0.0.1:9090 }

# The service that people sign in at.
provider:
  # Exactly as its tokens spell it; everything else is discovered from there.
  issuer: ${scalar(issuer)}
  client_id: ${scalar(client_id)}
  # A secret never stands in this file: { env: NAME } or { file: PATH }.
  client_secret: { env: CLIENT_SECRET }
  # Scopes need not be listed: a refresh token is asked for in the way of this provider. A list replaces all of them.
  # scopes: [${firstScopes(issuer)}]

session:
${store === 'memory' ? memoryText : redisText(store)}
  # A session ends when nothing was asked for in this time …
  idle_timeout: 30m
  # … and after this time in any case.
  absolute_timeout: 12h

# The applications behind the gateway, each under a name of your choice.
upstreams:
  app:
    # Nobody else should be able to reach it there.
    url: ${scalar(upstream)}

    # What it is told about the person, in request headers. What a client sends under these names is removed.
    headers:
      X-Remote-User: sub
      X-Email: email
      X-Name: name
      # X-Groups: { claim: groups, join: ',', encode: percent }

    # Who may see what: the first rule that matches decides. Everything else is for whoever is signed in.
    # rules:
    #   - { path: /static/*, access: public }
    #   - { path: /api/*, unauthenticated: 401 }
    #   - { path: /admin/*, require: { claim: groups, any_of: [admins] } }

    # The application's own logout link, and its cookies: opening the one signs out of everything and expires the others.
    # logout: { paths: [/logout], cookies: [JSESSIONID] }

    # Checked by "gatehouse check", and each time before this file is put to use.
    tests:
      - { get: /, expect: sign_in }
      - { as: { sub: u1, email: jane@example.com }, get: /, expect: pass, headers: { X-Remote-User: u1 } }
`
}

/**
 * What is asked for without a list, as far as it is known before the provider has been discovered.
 */
function firstScopes(issuer: string): string {
  return ['openid', 'profile', 'email', ...(providerKind(issuer) === 'other' ? [offlineAccess] : [])].join(', ')
}

const tlsText = `# To end TLS here instead, in place of the line above:
# listen: { address: 0.0.0.0:8443, tls: { cert_file: /run/tls/tls.crt, key_file: /run/tls/tls.key } }

# The proxies before the gateway, whose X-Forwarded-* is believed. Name yours, or applications are told http.
# trusted_proxies: [10.0.0.0/8]
`

const memoryText = `  # In this process: a restart signs everybody out, and there can be one replica only. For more: a Redis, and keys.
  store: memory`

function redisText(url: string): string {
  return `  # What lies in Redis is sealed with the first of these; all of them open. openssl rand -base64 32 makes one.
  keys: [{ env: SESSION_KEY }]
  # With a password: { redis: { url: …, password: { env: REDIS_PASSWORD } } }
  store: { redis: { url: ${scalar(url)} } }`
}

/** A text as a YAML value, in quotes where it could be taken for anything else. */
function scalar(text: string): string {
  return stringify(text, { lineWidth: 0 }).trimEnd()
}
