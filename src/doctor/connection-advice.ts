/** What to do about a failed connection, by the reason of the failure. */
export function connectionAdvice(why: string, setting: string, caSetting: string): string {
  const found = advice.find(([pattern]) => pattern.test(why))
  return (found?.[1] ?? 'check that it runs, and that SETTING is its address as seen from this machine')
    .replaceAll('SETTING', setting)
    .replaceAll('CA_FILE', caSetting)
}

const advice: readonly (readonly [RegExp, string])[] = [
  [
    /ENOTFOUND|EAI_AGAIN|getaddrinfo/,
    'check the host name in SETTING, and that it resolves on this machine: a container uses another DNS server than its host',
  ],
  [/ECONNREFUSED/, 'no program listens there: check that it runs, and compare the port with SETTING'],
  [
    /ALTNAME|does not match certificate|not in the cert/,
    'use the host name of its certificate in SETTING, or give it a certificate for this name',
  ],
  [/CERT_HAS_EXPIRED|certificate has expired/, 'its certificate has expired: renew it'],
  [
    /SELF_SIGNED|UNABLE_TO_|DEPTH_ZERO|unable to (?:verify|get)|self.signed/i,
    'set CA_FILE to the authority that signed its certificate',
  ],
  [
    /EPROTO|wrong version number|packet length|socket disconnected before secure TLS/,
    'one side speaks TLS and the other does not: compare the scheme in SETTING',
  ],
  [
    /no response|no answer|ETIMEDOUT|Timeout|timed out|EHOSTUNREACH|ENETUNREACH/i,
    'it is unreachable from this machine: look for a firewall, a network policy or a missing route',
  ],
]
