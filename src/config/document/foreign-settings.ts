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
