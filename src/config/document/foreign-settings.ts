/**
 * Hints for settings that the schema does not have: those of other gateways and web frameworks, and
 * likely guesses. The pattern matches the pointer of the setting.
 */
const hints: readonly (readonly [setting: RegExp, hint: string])[] = [
  [
    /\/(post_?logout_?redirect|logout|sign_?out)_?ur[il]s?$/,
    'remove it: this address follows from external_url and reserved_prefix; "gatehouse check" prints it',
  ],
  [
    /\/(redirect|redirection|callback|reply)_?(ur[il]s?|path)$/,
    'remove it: the redirect URI follows from external_url and reserved_prefix; "gatehouse check" prints what to register at the provider',
  ],
  [
    /\/(trust(ed)?_?(proxy|proxies|forward\w*|x_?forwarded\w*)|reverse_?proxy|real_?(client_?)?ip\w*|(x_)?forwarded_\w+)$/,
    'write trusted_proxies at the top level, with the addresses of the proxies in front of the gateway: trusted_proxies: [10.0.0.0/8]',
  ],
  [
    /(\/session(\/cookie)?\/|cookie_?)domains?$/,
    'the session cookie is for one host; for one session on all hosts of a domain, write session.cookie.domain after you have read about its risks',
  ],
  [
    /(\/session(\/cookie)?\/|cookie_?)(secure|http_?only|path)$/,
    'remove it: the session cookie is always HttpOnly with Path=/, and Secure when external_url is https',
  ],
  [
    /(\/session(\/cookie)?\/|cookie_?)(max_?age|expires?|expiry|expiration|ttl|lifetime|refresh|duration|timeout)$/,
    'write session.idle_timeout and session.absolute_timeout, which limit how long a session lasts',
  ],
  [/\/basic\/(user_?name|login|name|claim)$/, 'write user: preferred_username, or another claim path or template'],
  [
    /\/logout\/call\/(path|ur[il]|method|put|patch|delete|head)$/,
    'write call: { get: /logout } or call: { post: /logout }; no other method is possible',
  ],
  [/^\/credentials$/, 'write client_id and client_secret below provider'],
  [
    /^\/upstreams\/[^/]+\/credentials$/,
    'write cors: { credentials: true }, or client_id and client_secret below provider',
  ],
  [
    /^\/upstreams\/[^/]+\/(bearer|(access_?)?token|authorization|id_?token)$/,
    'write headers: { Authorization: { bearer: access_token } }',
  ],
  [
    /^\/providers?(\/[^/]+)?\/(preset|type|kind|vendor|name)$/,
    'remove it: the gateway reads what the provider supports from its issuer',
  ],
  [
    /^\/upstreams\/[^/]+\/(access|public\w*|anonymous|auth|authentication|require_?auth\w*|white_?list|bypass\w*|skip_\w+|exclude\w*|unprotected\w*|no_?auth)$/,
    'write a rule: rules: [{ path: /health, access: public }]',
  ],
  [
    /^\/upstreams\/[^/]+\/(http_?[123]|h2c?|http_?version|grpc|protocol|alpn)$/,
    'remove it: the gateway uses HTTP/1.1 with upstreams',
  ],
  [/^\/upstreams\/[^/]+\/(allow_)?(ws|web_?sockets?)$/, 'remove it: WebSockets need no setting'],
  [
    /^\/upstreams\/[^/]+\/(proxy_?pass|backend|target|servers?|upstream|to|service|destination|uri|addr|address|port)$/,
    'write url: http://127.0.0.1:3000',
  ],
  [
    /^\/upstreams\/[^/]+\/(server_?name|domains?|host_?names?|virtual_?host|fqdn)$/,
    'write external_url: https://HOST, or hosts: [HOST] for further hosts of the same upstream',
  ],
  [/^\/upstreams\/[^/]+\/(location|(path_?)?prefix|route|context_?path|base_?path)$/, 'write path: /shop/'],
  [/^\/upstreams\/[^/]+\/(strip_\w*prefix|rewrite(_\w+)?)$/, 'write path: /shop/ and strip_path: true'],
  [/^\/upstreams\/[^/]+\/(preserve|pass|forward)_?host(_header)?$/, 'write host_header: client'],
  [
    /^\/upstreams\/[^/]+\/((proxy_)?(read|send|request|write)_?)?timeout$/,
    'write connect_timeout, response_timeout or idle_timeout',
  ],
  [/^\/(metrics|health\w*|live\w*|ready|readiness|status|prometheus)$/, 'write admin: { listen: 127.0.0.1:9090 }'],
  [
    /^\/(tls|ssl|https|certs?|certificates?)$/,
    'write listen: { address: 0.0.0.0:443, tls: { cert_file: /run/tls/tls.crt, key_file: /run/tls/tls.key } }',
  ],
  [/^\/listen\/tls\/(cert|certificate|crt|chain|full_?chain)$/, 'write cert_file: PATH'],
  [/^\/listen\/tls\/(key|private_?key)$/, 'write key_file: PATH'],
  [
    /^\/(routers?|services?|middlewares|entry_?points|http|server|apps?|applications?|routes|sites?|backends?)$/,
    'write upstreams: { orders: { url: http://127.0.0.1:3000 } }',
  ],
  [/^\/redis$/, 'write session: { store: { redis: { url: rediss://redis:6379 } } }'],
  [
    /^\/session\/store\/(type|kind|url|hosts?|port|address)$/,
    'write store: { redis: { url: rediss://redis:6379 } }, or store: memory',
  ],
  [/^\/upstreams\/[^/]+\/logout\/(ur[il]|path|link)$/, 'write paths: [/logout], the logout link of the application'],
  [/^\/upstreams\/[^/]+\/logout\/\w*cookies$/, 'write cookies: [NAME]'],
  [
    /^\/upstreams\/[^/]+\/tests\/\d+\/(request|method|path|ur[il]|status|code)$/,
    'write the method with the path, and the outcome: { get: /orders, expect: sign_in }',
  ],
  [/\/cookie_?(secret|key)s?$/, 'write session.keys: [{ env: NAME }] or [{ file: PATH }]'],
  [
    /^\/upstreams\/[^/]+\/(allow|deny|den(y|ied)_\w+|allow(ed)?_\w+|permit|forbid|restrict|authoriz\w+|polic(y|ies)|roles?|groups?|users?|emails?)$/,
    'write a rule: rules: [{ path: /*, require: { claim: groups, any_of: [admins] } }]; none_of excludes people',
  ],
  [
    /\/rules\/\d+\/(allow|deny|den(y|ied)_\w+|allow(ed)?_\w+|permit|forbid|restrict|authoriz\w+|polic(y|ies)|roles?|groups?|users?|emails?)$/,
    'write require: { claim: groups, any_of: [admins] }; none_of excludes people, and access: public lets everybody in',
  ],
]

/**
 * The hint for a setting that other gateways have, or that is a likely guess; `undefined` for all
 * other names. `at` is the pointer of the map that contains the setting.
 */
export function hintForForeignSetting(name: string, at: string): string | undefined {
  const plain = name
    .slice(0, 64)
    .replaceAll(/(?<=[a-z])(?=[A-Z])/g, '_')
    .replaceAll(/[-. /]/g, '_')
    .toLowerCase()
  return hints.find(([setting]) => setting.test(`${at}/${plain}`))?.[1]
}
