/** What a `traceparent` says (W3C Trace Context §3.2). */
export interface TraceParent {
  readonly traceId: string
  /** Of the caller's span. */
  readonly parentId: string
  readonly isSampled: boolean
}

const syntax = /^([\da-f]{2})-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})(-.*)?$/

/** Absent when it is malformed: then there is no trace to belong to (§4.3). */
export function parseTraceParent(value: string | readonly string[] | undefined): TraceParent | undefined {
  if (typeof value !== 'string') return undefined
  const [, version, traceId = '', parentId = '', flags = '', more] = syntax.exec(value.trim()) ?? []
  // Later versions may say more, this one does not; ff is none.
  if (version === undefined || version === 'ff' || (version === '00' && more !== undefined)) return undefined
  if (/^0+$/.test(traceId) || /^0+$/.test(parentId)) return undefined
  return { traceId, parentId, isSampled: (parseInt(flags, 16) & 1) === 1 }
}
