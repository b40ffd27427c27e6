import type { OutgoingHttpHeaders } from 'node:http2'
import { GatewayError } from '../../core/errors.ts'
import { fieldLine } from '../../wire/fields.ts'
import type { UpstreamRequest } from '../transport.ts'

/**
 * The head of a request in HTTP/2: `Host` is `:authority`, and names are in lower case (RFC 9113
 * §8.2, §8.3.1). There are no fields of a connection.
 * @throws {GatewayError} ERR_REQUEST_MALFORMED when a field is invalid
 */
export function requestFields(
  { method, path, headers, identity }: UpstreamRequest,
  scheme: 'http' | 'https',
): OutgoingHttpHeaders {
  // Without a prototype, because a field may be named "constructor".
  const fields = Object.create(null) as Record<string, string | string[]>
  Object.assign(fields, { ':method': method, ':scheme': scheme, ':path': path })
  for (const list of [headers, identity])
    for (let at = 0; at + 1 < list.length; at += 2) {
      const name = (list[at] as string).toLowerCase()
      const value = list[at + 1] as string
      // The last guard against field injection: Node.js separates fields by NUL.
      if (fieldLine(name, value) === undefined)
        throw new GatewayError('ERR_REQUEST_MALFORMED', `the field "${name}" has an invalid name or value`)
      const written = name === 'host' ? ':authority' : name
      const earlier = fields[written]
      fields[written] = earlier === undefined ? value : [earlier, value].flat()
    }
  return fields
}
