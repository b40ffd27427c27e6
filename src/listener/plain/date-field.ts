let text = ''
let second = 0

/**
 * The `Date` field of a response that is sent now (RFC 9110 §6.6.1). It begins with the CRLF that
 * ends the line before it.
 */
export function dateField(): string {
  const now = Math.floor(Date.now() / 1000)
  if (now !== second) {
    second = now
    text = `\r\nDate: ${new Date(now * 1000).toUTCString()}`
  }
  return text
}
