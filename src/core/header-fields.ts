/** What is special about a header field. All other fields are passed on as they are. */
export type FieldKind = keyof typeof fields

interface FieldRow {
  readonly names: readonly string[]
  /** All names that begin like this are of this kind too. */
  readonly prefixes?: readonly string[]
  /**
   * The field of a client never reaches an upstream, for this reason. Absent: it does, unless the
   * code for this kind changes that.
   */
  readonly withheld?: string
  /** The configuration cannot set the field on requests to an upstream. */
  readonly isReserved?: true
}

/** The table of header fields, in lower case. `proxy`, `config` and `explain` read it. */
const fields = {
  /** Fields of one connection (RFC 9110 §7.6.1). undici and Node.js write some of them. */
  hop_by_hop: {
    names: [
      ...['connection', 'keep-alive', 'te', 'trailer', 'transfer-encoding', 'upgrade', 'http2-settings'],
      ...['proxy-connection', 'proxy-authenticate', 'proxy-authorization', 'proxy-authentication-info'],
    ],
    withheld: 'applies to one connection only',
    isReserved: true,
  },
  /** RFC 9110 §10.1.1. */
  expectation: { names: ['expect'], withheld: 'is handled by the gateway', isReserved: true },
  /** The gateway writes these fields itself, from the connection and from trusted proxies. */
  rewritten: {
    names: ['host', 'forwarded', 'x-real-ip', 'x-request-id'],
    prefixes: ['x-forwarded-'],
    withheld: 'is written by the gateway, from trusted sources only',
    isReserved: true,
  },
  /** Some upstreams route by these fields instead of the URL that the rules were applied to. */
  other_address: {
    names: ['x-rewrite-url'],
    prefixes: ['x-original-'],
    withheld: 'could make the application use another URL than the rules were applied to',
  },
  /** CGI turns it into HTTP_PROXY, which programs use as their proxy (CVE-2016-5385). */
  proxy_setting: { names: ['proxy'], withheld: 'could make programs of the application use a proxy' },
  /** W3C Trace Context §3.2, §3.3. Withheld only when the gateway takes part in traces. */
  trace: { names: ['traceparent', 'tracestate'], isReserved: true },
  /**
   * The upstreams that a request was sent to, for gateways that it comes back to. Not `Via`,
   * because servers change their responses to requests with `Via`: nginx does not compress them.
   */
  loop: { names: ['gatehouse-loop'], isReserved: true },
  /** The JWT that the gateway signs: see `signed_identity` of an upstream. */
  signed_identity: { names: ['x-gatehouse-identity'], withheld: 'only the gateway sets this field', isReserved: true },
  /** The certificate of a client, as a proxy reports it (RFC 9440 §2.4). */
  client_certificate: {
    names: ['client-cert', 'client-cert-chain'],
    withheld: 'only a proxy in front of the gateway may set it',
  },
  content_length: { names: ['content-length'], isReserved: true },
  cookie: { names: ['cookie'], isReserved: true },
  set_cookie: { names: ['set-cookie'], isReserved: true },
  /** Some applications take the method from them. Withheld where rules depend on the method. */
  method_override: { names: ['x-http-method-override', 'x-http-method', 'x-method-override'] },
} as const satisfies Readonly<Record<string, FieldRow>>

const rows = Object.entries(fields) as readonly [FieldKind, FieldRow][]
const kinds = new Map(rows.flatMap(([kind, { names }]) => names.map((name) => [name, kind] as const)))
const prefixes = rows.flatMap(([kind, { prefixes = [] }]) => prefixes.map((prefix) => [prefix, kind] as const))
const hopByHop: ReadonlySet<string> = new Set(fields.hop_by_hop.names)

/** The names of the fields of a kind, in lower case. */
export function fieldsOf(kind: FieldKind): readonly string[] {
  return fields[kind].names
}

/** The kind of a field, by its name in lower case; `undefined`: nothing is special about it. */
export function kindOfField(name: string): FieldKind | undefined {
  return kinds.get(name) ?? prefixes.find(([prefix]) => name.startsWith(prefix))?.[1]
}

/** Why a field of a client never reaches an upstream, by its name in lower case; or `undefined`. */
export function withheldReason(name: string): string | undefined {
  const kind = kindOfField(name)
  const row: FieldRow | undefined = kind && fields[kind]
  // Some upstreams read "X_Remote.User" as "X-Remote-User" (CGI, WSGI and PHP do).
  return row?.withheld ?? (plainName.test(name) ? undefined : 'could be read as another header name')
}

/** Node.js ignores a second field with one of these names. It joins the values of all others. */
export const singleFields: ReadonlySet<string> = new Set([
  ...['age', 'authorization', 'content-length', 'content-type', 'etag', 'expires', 'from', 'host'],
  ...['if-modified-since', 'if-unmodified-since', 'last-modified', 'location', 'max-forwards'],
  ...['proxy-authorization', 'referer', 'retry-after', 'server', 'user-agent'],
])

const plainName = /^[a-z0-9-]+$/

/** Whether the configuration cannot set this field of requests, by its name in lower case. */
export function isReservedField(name: string): boolean {
  return name.startsWith('proxy-') || !isRemovableField(name)
}

/** Whether the configuration can remove this field of clients, by its name in lower case. */
export function isRemovableField(name: string): boolean {
  if (forwardedIdentity.has(name)) return true
  const kind = kindOfField(name)
  return kind === undefined || (fields[kind] as FieldRow).isReserved !== true
}

/** Identity headers of other gateways. A client can never set them: see `x-forwarded-` above. */
const forwardedIdentity: ReadonlySet<string> = new Set([
  'x-forwarded-user',
  'x-forwarded-email',
  'x-forwarded-groups',
  'x-forwarded-preferred-username',
])

/**
 * Whether the configuration may set this reserved field to a constant or to a fact about the
 * request. Such a field says how a proxy received the request, and the gateway does not write it by
 * itself. A client can never set it. `name` is in lower case.
 */
export function isForwardedFact(name: string): boolean {
  if (name === 'x-real-ip') return true
  return name.startsWith('x-forwarded-') && !alwaysForwarded.has(name) && !forwardedIdentity.has(name)
}

/** The gateway writes these into each request. */
const alwaysForwarded: ReadonlySet<string> = new Set(['x-forwarded-for', 'x-forwarded-proto', 'x-forwarded-host'])

/** Whether a field ends with the connection. `name` is in lower case. */
export function isHopByHop(name: string): boolean {
  return hopByHop.has(name)
}

const none: ReadonlySet<string> = new Set()
const harmless = /^(?:keep-alive|close|upgrade)$/i

/**
 * The names that `Connection` lists, in lower case. Fields with these names are not passed on.
 * @param fields names and values in turn
 */
export function namedInConnection(fields: readonly string[]): ReadonlySet<string> {
  let listed = none
  for (let at = 0; at + 1 < fields.length; at += 2) {
    const name = fields[at] as string
    if (name.length !== 10 || name.toLowerCase() !== 'connection') continue
    const value = fields[at + 1] as string
    if (harmless.test(value)) continue
    listed = new Set([...listed, ...value.split(',').map((option) => option.trim().toLowerCase())])
  }
  return listed
}

/** Whether a response field tells browsers what pages of other origins may do (Fetch §3.2.3). */
export function isCorsField(lowerCase: string): boolean {
  return lowerCase.startsWith('access-control-')
}

/** Whether one of the policies in a `Content-Security-Policy` has a directive (CSP §2.2.1). */
export function hasDirective(policies: string, directive: string): boolean {
  return policies.split(/[;,]/).some((each) => each.trim().split(/\s/, 1)[0]?.toLowerCase() === directive)
}

const fieldsOfResponses =
  /^(?:X-(?:Frame-Options|Content-Type-Options|XSS-Protection|Powered-By|Robots-Tag)|Content-Security-Policy(?:-Report-Only)?|Strict-Transport-Security|(?:Referrer|Permissions|Feature)-Policy|Access-Control-Allow-.*|Access-Control-(?:Expose-Headers|Max-Age)|Cross-Origin-.*-Policy|WWW-Authenticate)$/i

/** Whether a field is one that browsers receive, and that no application reads. */
export function isFieldOfResponses(name: string): boolean {
  return fieldsOfResponses.test(name)
}
