import type { RequestRecord, RequestSink } from './request-record.ts'

/**
 * Writes a line of JSON for each request. The line is concatenated by hand, because most fields
 * need no escaping and the code runs for each request.
 */
export function createAccessLog(write: (line: string) => void): RequestSink {
  let lastMs = 0
  let lastTime = ''
  const time = (): string => {
    const now = Date.now()
    if (now !== lastMs) {
      lastMs = now
      lastTime = new Date(now).toISOString()
    }
    return lastTime
  }
  return { ended: (record) => write(accessLine(record, time())) }
}

/** `time` is ISO 8601. */
export function accessLine(record: RequestRecord, time: string): string {
  const { askedBy, upstream, session, code, traceId } = record
  const us = Math.round(record.durationMs * 1000)
  let line =
    `{"level":"info","time":"${time}","msg":"request.ended","request":"${record.id}","method":"${record.method}",` +
    `"host":"${escaped(record.host)}","path":"${escaped(record.path)}","status":${record.status},"bytes":${record.bytes},` +
    `"ms":${Math.floor(us / 1000)}.${String(1000 + (us % 1000)).slice(1)},"client":"${record.client}"`
  if (record.waitedMs >= 1) line += `,"waited_ms":${Math.round(record.waitedMs)}`
  if (askedBy !== undefined) line += `,"asked_by":"${askedBy}"`
  if (upstream !== undefined) line += `,"upstream":"${upstream}"`
  if (session !== undefined) line += `,"session":"${session}"`
  if (record.caller !== undefined) line += `,"caller":"${record.caller}"`
  if (code !== undefined) line += `,"code":"${code}"`
  if (record.aborted) line += ',"aborted":true'
  if (traceId !== undefined) line += `,"trace":"${traceId}"`
  return `${line}}\n`
}

/** Longer texts are cut, in characters, because log collectors limit the length of a line. */
const longestText = 1024
/** Characters that need escaping, and ";", which begins the parameters of a path. */
const needsEscaping = /[^ !#-:<-[\]-~]/

/**
 * Hides the parameters of a path, because they can contain the session of the application
 * (`;jsessionid=…`).
 */
export function withoutParameters(path: string): string {
  return path.replaceAll(/;[^/]*/g, ';…')
}

function escaped(text: string): string {
  if (text.length <= longestText && !needsEscaping.test(text)) return text
  const shown = withoutParameters(text)
  const cut = shown.length > longestText ? `${shown.slice(0, longestText)}…` : shown
  // Everything beyond printable ASCII is escaped, because a terminal would interpret control
  // characters.
  return cut.replaceAll(/[^ !#-[\]-~]/g, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)
}
