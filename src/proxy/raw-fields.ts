import type { RawFields } from '../transport/transport.ts'

/** A name or value of a field as text in which each character is a byte, as Node.js writes it. */
export function fieldText(text: Buffer | string): string {
  return typeof text === 'string' ? text : text.toString('latin1')
}

/** The value of a field, joined if it is repeated (RFC 9110 §5.3); empty when it is absent. */
export function fieldValue(fields: RawFields, lowerCase: string): string {
  const values: string[] = []
  for (let at = 0; at + 1 < fields.length; at += 2)
    if (fields[at]?.length === lowerCase.length && fieldText(fields[at] ?? '').toLowerCase() === lowerCase)
      values.push(fieldText(fields[at + 1] ?? ''))
  return values.join(', ')
}
