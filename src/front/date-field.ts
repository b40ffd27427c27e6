let text = ''
let second = 0

/** The `Date` field of a response that is sent now (RFC 9110 §6.6.1). */
export function dateField(): string {
  const now = Math.floor(Date.now() / 1000)
  if (now !== second) {
    second = now
    text = `Date: ${new Date(now * 1000).toUTCString()}\r\n`
  }
  return text
}
