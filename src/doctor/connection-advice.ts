/** What to do about a connection that failed, by what was said of it. */
export function connectionAdvice(why: string, setting: string, caSetting: string): string {
  const found = advice.find(([pattern]) => pattern.test(why))
  return (found?.[1] ?? 'see whether it runs, and whether SETTING is its address as seen from here')
    .replaceAll('SETTING', setting)
    .replaceAll('CA_FILE', caSetting)
}

const advice: readonly (readonly [RegExp, string])[] = [
  [
    /ENOTFOUND|EAI_AGAIN|getaddrinfo/,
    'check the host name in SETTING, and that it can be resolved here: a container asks another DNS than its host',
  ],
  [/ECONNREFUSED/, 'nobody listens there: see whether it runs, and compare the port with SETTING'],
  [
    /ALTNAME|does not match certificate|not in the cert/,
    'write the host name that stands in its certificate into SETTING, or give it a certificate for this name',
  ],
  [/CERT_HAS_EXPIRED|certificate has expired/, 'its certificate has expired: renew it'],
  [
    /SELF_SIGNED|UNABLE_TO_|DEPTH_ZERO|unable to (?:verify|get)|self.signed/i,
    'name the authority that signed its certificate in CA_FILE',
  ],
  [
    /EPROTO|wrong version number|packet length|socket disconnected before secure TLS/,
    'one side speaks TLS and the other does not: compare the scheme in SETTING',
  ],
  [
    /no answer|ETIMEDOUT|Timeout|timed out|EHOSTUNREACH|ENETUNREACH/i,
    'it cannot be reached from here: look for a firewall, a network policy or a missing route',
  ],
]
