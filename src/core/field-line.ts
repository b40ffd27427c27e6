import { ByName } from './by-name.ts'

const notInToken = /[^\w!#$%&'*+.^`|~-]/
const notInValue = /[^\t\x20-\x7e\x80-\xff]/

/** `undefined` for a name that is not a token (RFC 9110 §5.1). */
const beginnings = new ByName((name) => (name === '' || notInToken.test(name) ? undefined : `\r\n${name}: `))

/**
 * A field of a head, behind the line before it: `\r\nName: value`. `undefined` when the name is not
 * a token, or the value contains a control character or one beyond a byte: the field could end the
 * head, or begin another field (RFC 9110 §5.5).
 */
export function fieldLine(name: string, value: string): string | undefined {
  const beginning = beginnings.of(name)
  return beginning === undefined || notInValue.test(value) ? undefined : beginning + value
}
