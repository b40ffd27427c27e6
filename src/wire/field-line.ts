import { ByName } from './by-name.ts'

const notInToken = /[^\w!#$%&'*+.^`|~-]/
const notInValue = /[^\t\x20-\x7e\x80-\xff]/

/** `null` for a name that is not a token (RFC 9110 §5.1). */
const beginnings = new ByName((name) => (name === '' || notInToken.test(name) ? null : `\r\n${name}: `))

/**
 * A field of a head. It begins with the CRLF that ends the line before it: `\r\nName: value`.
 * `undefined` when the name is not a token, or the value is invalid.
 */
export function fieldLine(name: string, value: string): string | undefined {
  const beginning = beginnings.of(name)
  return beginning === null || !isFieldValue(value) ? undefined : beginning + value
}

/**
 * Whether a text contains no control character and none beyond a byte. Otherwise it could end the
 * head, or begin another field (RFC 9110 §5.5).
 */
export function isFieldValue(text: string): boolean {
  return !notInValue.test(text)
}
