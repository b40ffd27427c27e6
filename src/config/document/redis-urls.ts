/**
 * One of several servers: `HOST:PORT`, or `rediss://HOST:PORT` with TLS.
 * @param example with TLS
 * @throws {SyntaxError} names what is wrong
 */
export function parseRedisServer(text: string, example: string): URL {
  const address = example.replace('rediss://', '')
  const url = parseServerUrl(
    text.includes('://') ? text : `redis://${text}`,
    `HOST:PORT such as ${address} or, with TLS, ${example}`,
  )
  if (!/^\/?$/.test(url.pathname) || /[?#]/.test(text))
    throw new SyntaxError(`must have nothing after the host and port, such as ${address}`)
  return url
}

/**
 * Where one Redis is: `redis://` or `rediss://`, without user name and password.
 * @throws {SyntaxError} names what is wrong
 */
export function parseRedisUrl(text: string): URL {
  const url = parseServerUrl(text, 'a redis:// or rediss:// URL such as rediss://redis:6379')
  if (!/^(\/\d{0,5})?$/.test(url.pathname) || text.includes('?') || text.includes('#'))
    throw new SyntaxError(
      'must have nothing but a database number after the host and port, such as rediss://redis:6379/0',
    )
  return url
}

function parseServerUrl(text: string, expected: string): URL {
  if (!/^rediss?:\/\/[^\s\\/]+/i.test(text) || !URL.canParse(text)) throw new SyntaxError(`must be ${expected}`)
  const url = new URL(text)
  if (url.password !== '')
    throw new SyntaxError('must not contain a password; write password: { env: NAME } or { file: PATH } beside it')
  if (url.username !== '') throw new SyntaxError('must not contain a user name; write username: beside it')
  return url
}

/** The URL of Redis that a person wrote, also below `url`. One with a password is not repeated. */
export function redisUrlOf(value: unknown): string | undefined {
  const text: unknown = typeof value === 'object' && value !== null && 'url' in value ? value.url : value
  if (typeof text !== 'string') return undefined
  const [, scheme = 'redis:', server] = /^(?:(rediss?:)\/\/)?([\w.[\]-]+(?::\d+)?(?:\/\d*)?)$/i.exec(text.trim()) ?? []
  return server && `${scheme.toLowerCase()}//${server}`
}
