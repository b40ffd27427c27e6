/** Fields that are about one connection and end with it (RFC 9110 §7.6.1), and those that undici and Node write themselves. */
const hopByHop: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-authentication-info',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'http2-settings',
])

export function isHopByHop(name: string): boolean {
  return hopByHop.has(name)
}

const none: ReadonlySet<string> = new Set()
const harmless = /^(?:keep-alive|close|upgrade)$/i

/** The names in a `Connection` field, lower case, added to those of the fields before it: none of them goes any further. */
export function connectionOptions(value: string, before: ReadonlySet<string> = none): ReadonlySet<string> {
  if (harmless.test(value)) return before
  const names = value.split(',').map((name) => name.trim().toLowerCase())
  return new Set([...before, ...names])
}

export const noConnectionOptions = none
