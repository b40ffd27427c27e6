import { stringify } from 'yaml'
import {
  harmOfOfflineAccess,
  isLoopback,
  offlineAccess,
  parseHttpUrl,
  parseOrigin,
  parseRedisUrl,
  providerKind,
} from '../../src/entries/setup.ts'

/** The values that a first configuration needs. */
export interface Answers {
  readonly issuer: string
  readonly client_id: string
  /** The origin at which browsers reach the gateway. */
  readonly url: string
  readonly upstream: string
  /** `memory`, `file:` and a path, or a redis:// or rediss:// URL. */
  readonly store: string
}

/** A question of `gatehouse init`, a check of its answer, and the default for an empty answer. */
export interface Question {
  readonly name: keyof Answers
  readonly text: string
  readonly example: string
  readonly fallback?: string
  /** @throws {SyntaxError} when the answer is invalid; the message is for people */
  readonly check: (answer: string) => void
}

export const questions: readonly Question[] = [
  {
    name: 'issuer',
    text: 'The issuer of your OpenID Provider, exactly as the provider spells it',
    example: 'https://id.example.com',
    check: (answer) => {
      const url = parseHttpUrl(answer, 'https://id.example.com')
      if (url.protocol === 'http:' && !isLoopback(url.hostname))
        throw new SyntaxError('must be https, except for a provider on this machine')
      if (url.pathname.includes('/.well-known/')) throw new SyntaxError('must end before /.well-known/')
    },
  },
  {
    name: 'client_id',
    text: 'The client ID of this gateway at the provider (client_id)',
    example: 'orders',
    check: (answer) => {
      if (answer.trim() === '' || /\p{Cc}/u.test(answer)) throw new SyntaxError('must not be empty')
    },
  },
  {
    name: 'url',
    text: 'The URL at which browsers reach the gateway',
    example: 'https://orders.example.com',
    check: (answer) => void parseOrigin(answer),
  },
  {
    name: 'upstream',
    text: 'The URL of the application',
    example: 'http://127.0.0.1:3000',
    check: (answer) => void parseOrigin(answer, 'http://127.0.0.1:3000'),
  },
  {
    name: 'store',
    text: 'Where the gateway stores sessions: memory (a restart ends all sessions), file:PATH (for one replica), or the URL of a Redis (for several)',
    example: 'redis://redis:6379',
    fallback: 'memory',
    check: (answer) => {
      if (/^rediss?:/i.test(answer)) parseRedisUrl(answer)
      else if (answer !== 'memory' && storeFile(answer) === undefined)
        throw new SyntaxError(
          'must be memory, file:/PATH/sessions.db, or the URL of a Redis such as rediss://redis:6379',
        )
    },
  },
]

/** The path of `file:PATH`, or undefined for another store. */
function storeFile(store: string): string | undefined {
  return /^file:((?!\/\/).+)/s.exec(store)?.[1]
}

/** Shell commands that set the environment variables of the file. */
export function exportsFor({ store }: Answers): readonly string[] {
  const client = "export CLIENT_SECRET='…'   # from the provider"
  return store === 'memory' ? [client] : [client, 'export SESSION_KEY="$(openssl rand -base64 32)"   # keep it']
}

/** A first configuration that explains every setting. `gatehouse check` accepts it as it is. */
export function firstFile({ issuer, client_id, url, upstream, store }: Answers): string {
  const { hostname, protocol, port } = new URL(url)
  const behindTls = protocol === 'https:'
  // The application may already listen on port 8080 of this machine.
  const listenPort = behindTls ? (new URL(upstream).port === '8080' ? '8081' : '8080') : port || '80'
  return `# yaml-language-server: $schema=gateway.schema.json
# The line above lets editors complete and check this file. All settings: docs/reference.md.

# The version of this file's format.
version: 1

# Where the gateway listens.${behindTls ? ' It listens for plain http, because the proxy in front of it terminates TLS.' : ''}
listen: ${isLoopback(hostname) ? '127.0.0.1' : '0.0.0.0'}:${listenPort}
${behindTls ? tlsText : ''}
# Where browsers reach the gateway.
external_url: ${scalar(url)}

# Health, readiness and metrics, on an address that browsers cannot reach.
# admin: { listen: 127.0.0.1:9090 }

# The OpenID Provider where people sign in.
provider:
  # The issuer identifier, exactly as the provider spells it. The gateway discovers everything else.
  issuer: ${scalar(issuer)}
  # The identifier of this gateway at the provider.
  client_id: ${scalar(client_id)}
  # A secret is never written in this file. It comes from an environment variable, or from a file: { file: PATH }.
  client_secret: { env: CLIENT_SECRET }
  # Without a list, the gateway requests the scopes that suit this provider, with a refresh token. A list replaces them.
  # scopes: [${firstScopes(issuer)}]

session:
${store === 'memory' ? memoryText : keptText(store)}
  # A session ends when it has not been used for this time …
  idle_timeout: 30m
  # … and after this time even while it is used.
  absolute_timeout: 12h

${upstreamsText(upstream)}`
}

function upstreamsText(url: string): string {
  return `# The applications behind the gateway, each under a name of your choice.
upstreams:
  app:
    # Where the application listens. Only the gateway should be able to reach it.
    url: ${scalar(url)}

    # Request headers that tell the application who is signed in. The gateway removes headers with these names from clients.
    headers:
      X-Remote-User: sub
      X-Email: email
      X-Name: name
      # X-Groups: { claim: groups, join: ',', encode: percent }

    # Who may send which requests. The first rule that matches decides. Everything else needs a sign-in.
    # rules:
    #   - { path: /static/*, access: public }
    #   - { path: /api/*, unauthenticated: 401 }
    #   - { path: /admin/*, require: { claim: groups, any_of: [admins] } }

    # The logout link of the application signs out of the gateway and the provider. The gateway expires these cookies
    # of the application when the session ends.
    # logout: { paths: [/logout], cookies: [JSESSIONID] }

    # "gatehouse check" runs these tests, and so does the gateway before it uses this file.
    tests:
      - { get: /, expect: sign_in }
      - { as: { sub: u1, email: jane@example.com }, get: /, expect: pass, headers: { X-Remote-User: u1 } }
`
}

/** The default scopes that are known before discovery. */
function firstScopes(issuer: string): string {
  const isHarmful = harmOfOfflineAccess(providerKind(issuer)) !== undefined
  return `openid, profile, email${isHarmful ? '' : `, ${offlineAccess}`}`
}

const tlsText = `# To terminate TLS in the gateway, replace the line above with:
# listen: { address: 0.0.0.0:8443, tls: { cert_file: /run/tls/tls.crt, key_file: /run/tls/tls.key } }

# The proxies in front of the gateway. It uses X-Forwarded-* from these addresses only. Without your proxy here,
# applications receive http as the scheme.
# trusted_proxies: [10.0.0.0/8]
`

const memoryText = `  # Where sessions are stored. In memory they are lost when the process stops, and only one replica is possible.
  # One replica can keep them over a restart, in a file: { file: /var/lib/gatehouse/sessions.db } and keys.
  # For several replicas: { redis: { url: redis://… } } and keys.
  store: memory`

function keptText(store: string): string {
  const file = storeFile(store)
  return `  # The gateway encrypts stored data with the first key, and decrypts it with any of them. Create a key with
  # openssl rand -base64 32.
  keys: [{ env: SESSION_KEY }]
${file === undefined ? redisText(store) : fileText(file)}`
}

function redisText(url: string): string {
  return `  # With a password: { redis: { url: …, password: { env: REDIS_PASSWORD } } }
  store: { redis: { url: ${scalar(url)} } }`
}

function fileText(file: string): string {
  return `  # The folder must exist, and the gateway needs write access to it. Several replicas need Redis instead.
  store:
    file: ${scalar(file)}`
}

/** A text as a YAML value, quoted when YAML could read it as another type. */
function scalar(text: string): string {
  return stringify(text, { lineWidth: 0, blockQuote: false, doubleQuotedMinMultiLineLength: Infinity }).trimEnd()
}
