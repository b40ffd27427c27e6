import type { DefaultField, ResponseHeadersConfig } from '../model/upstream.ts'
import type { UpstreamSettings } from '../settings.ts'

/** Reads how the header fields of responses are changed. */
export function readResponseHeaders(
  settings: UpstreamSettings['responseHeaders'],
  embeddedIn: readonly string[],
): ResponseHeadersConfig {
  const { set, remove, hstsMs, frameAncestors, referrerPolicy, permissionsPolicy } = settings
  const ancestors = frameAncestors ?? framedByDefault(embeddedIn)
  const values = {
    'Strict-Transport-Security': hstsMs === undefined ? undefined : `max-age=${Math.floor(hstsMs / 1000)}`,
    'Content-Security-Policy': ancestors && `frame-ancestors ${ancestors.join(' ') || "'none'"}`,
    'Referrer-Policy': referrerPolicy,
    'Permissions-Policy': permissionsPolicy,
  }
  const defaults = Object.entries(values).flatMap(([name, value]): DefaultField[] => {
    if (value === undefined) return []
    // Browsers apply several policies together (CSP §4.2), so that a policy without this directive
    // stays.
    return [{ name, value, ...(name === 'Content-Security-Policy' && { unless: 'frame-ancestors' }) }]
  })
  return { set, remove, defaults }
}

/** Where sessions are embedded, pages of further sites may not show the application. */
function framedByDefault(embeddedIn: readonly string[]): readonly string[] | undefined {
  return embeddedIn.length === 0 ? undefined : ["'self'", ...embeddedIn]
}
