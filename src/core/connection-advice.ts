import { reason } from './errors.ts'

/** Why a connection or a request failed. */
export interface ConnectionFailure {
  readonly why: string
  /** Whether the gateway stopped waiting for a response. */
  readonly isTimeout?: boolean
  /** Whether a response had begun. */
  readonly hasBegun?: boolean
}

/** What to do about a failed connection. `SETTING` and `CA_FILE` become the given settings. */
export function connectionAdvice(
  { why, isTimeout, hasBegun }: ConnectionFailure,
  setting: string,
  caSetting: string,
): string {
  const known = advice.find(([pattern]) => pattern.test(why))?.[1]
  const found = isTimeout === true ? unreachable : hasBegun === true ? brokenOff : known
  return (found ?? 'check that it runs, and that SETTING is its address as seen from this machine')
    .replaceAll('SETTING', setting)
    .replaceAll('CA_FILE', caSetting)
}

/** An advice as a sentence, for the hint of a log line. */
export function asHint(advice: string): string {
  return `${advice.charAt(0).toUpperCase()}${advice.slice(1)}.`
}

const unreachable = 'it is unreachable from this machine: look for a firewall, a network policy or a missing route'

const brokenOff =
  'it broke off a response that had begun: check its log, and whether it, or a proxy in front of it, was restarted or has a limit or a timeout that is too low'

/** By the error codes and messages of Node.js, undici and ioredis. */
const advice: readonly (readonly [RegExp, string])[] = [
  [/does not speak HTTP\/2/, 'remove protocol beside SETTING, or let the application speak HTTP/2 there'],
  [
    /alert certificate required|alert unknown ca|alert bad certificate/,
    'it accepts only clients with a certificate of an authority that it trusts: set client_certificate beside SETTING, or compare the authority',
  ],
  [
    /ENOTFOUND|EAI_AGAIN|getaddrinfo/,
    'check the host name in SETTING, and that it resolves on this machine: a container uses another DNS server than its host',
  ],
  [/ECONNREFUSED \//, 'no program listens on this socket: check that it runs'],
  [/ECONNREFUSED/, 'no program listens there: check that it runs, and compare the port with SETTING'],
  [
    /ALTNAME|does not match certificate|not in the cert/,
    'use the host name of its certificate in SETTING (for an upstream, also in server_name), or give it a certificate for this name',
  ],
  [/CERT_HAS_EXPIRED|certificate has expired/, 'its certificate has expired: renew it'],
  [
    /DEPTH_ZERO|self.signed certificate(?! in)/i,
    'its certificate is self-signed: set CA_FILE to this certificate (a file that is set has another), or give it one of an authority',
  ],
  [
    /SELF_SIGNED|UNABLE_TO_|unable to (?:verify|get)|self.signed/i,
    'set CA_FILE to the authority that signed its certificate (a file that is set does not contain it)',
  ],
  [
    /EPROTO|wrong version number|packet length|socket disconnected before secure TLS/,
    'one side speaks TLS and the other does not: compare the scheme in SETTING',
  ],
  [
    /ECONNRESET|EPIPE|closed the connection|other side closed|socket hang up/i,
    'it closed the connection without a response: check its log, whether it speaks TLS as SETTING says, and whether a limit or a timeout of it is too low',
  ],
  [/ETIMEDOUT|Timeout|timed out|EHOSTUNREACH|ENETUNREACH/i, unreachable],
  [
    /what it sends is not HTTP/,
    'another program listens there, such as a database or an SSH server: compare the port with SETTING',
  ],
]

/**
 * Explains why the gateway cannot listen on an address, and what to do.
 * @param setting the configuration key of the address
 */
export function listenError(
  cause: NodeJS.ErrnoException,
  { host, port }: { readonly host: string; readonly port: number },
  setting: string,
): string {
  const where = `${host}:${port}`
  if (cause.code === 'EADDRINUSE')
    return `port ${port} of ${host} is in use: stop the other program, or choose another port in ${setting}`
  if (cause.code === 'EACCES')
    return `no permission to listen on ${where}: ports below 1024 need a privilege; choose port 1024 or higher in ${setting}`
  if (cause.code === 'EADDRNOTAVAIL' || cause.code === 'ENOTFOUND')
    return `${where} is not an address of this machine: correct ${setting}`
  return `the gateway cannot listen on ${where}: ${reason(cause)}`
}
