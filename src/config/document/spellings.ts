import type { AnySchemaObject } from 'ajv'
import { ownMember } from '../../core/json.ts'
import { amountOf, durations, durationText } from '../quantities.ts'

/** How to write a value as its schema wants it: `12 hours` → `12h`; `undefined`: it is unclear. */
export function hintForSpelling(data: unknown, schema: AnySchemaObject | undefined): string | undefined {
  if (typeof data !== 'string' && typeof data !== 'number') return undefined
  const text = String(data).trim().slice(0, 64)
  const { atLeast = '', atMost = '' } = (schema ?? {}) as Readonly<Record<string, string | undefined>>
  const right = spellings(text, schema?.['quantity']).filter((each) =>
    new RegExp(String(schema?.['pattern'])).test(each),
  )
  const [first] = right
  if (first === undefined) return undefined
  const possible = right.filter((each) => !(amountOf(each) < amountOf(atLeast)) && !(amountOf(each) > amountOf(atMost)))
  if (possible.length > 0) return `write ${possible.join(' or ')}`
  return amountOf(first) > amountOf(atMost) ? `write ${atMost} or less` : `write ${atLeast} or more`
}

function spellings(text: string, quantity: unknown): readonly string[] {
  switch (quantity) {
    case 'duration':
      return /^\d+$/.test(text) ? [`${text}ms`, `${text}s`] : [durationOf(text) ?? '']
    case 'size':
      return /^\d+$/.test(text) ? [`${text}b`, `${text}kb`] : [sizeOf(text) ?? '']
    case 'rate':
      return /^\d+$/.test(text) ? [`${text}/s`, `${text}/m`] : [rateOf(text) ?? '']
    default:
      // The beginning of names.
      return /[-_]$/.test(text) ? [`${text}*`] : /^[a-z]+$/.test(text) ? [text.toUpperCase()] : []
  }
}

/** A value of Helm, Jinja or Go that nothing has filled in. */
export const templateFault = {
  message: 'is a template that was not filled in',
  hint: 'render the file first: a configuration has no variables; a secret is { env: NAME } or { file: PATH }',
}

/**
 * A whole value that other programs replace: `${NAME}`, `$NAME`, `$(NAME)`, `%NAME%`, `{{ name }}`,
 * `{$NAME}`, `{env.NAME}`, `<% name %>`, `env:NAME`.
 */
const template =
  /^(["']?)(?:\$\{[A-Z][A-Z\d_]*(?::?[-?][^}]*)?\}|\$\(?[A-Z][A-Z\d_]{2,}\)?|%[A-Z][A-Z\d_]{2,}%|\$?\{\{.*\}\}|\{(?:\$|env\.)[A-Z][A-Z\d_]*\}|<%.*%>|env:[A-Z][A-Z\d_]+)\1\s*(?:$|#|[,}\]])/

/** Whether the source text of a value is a template that was not filled in, and nothing else. */
export function isTemplate(source: string): boolean {
  return template.test(source)
}

/** The hint for what templates and editors put in a value. `source` begins where it begins. */
export function hintForSource(source: string): string | undefined {
  if (/^["']?[^"'\s]*(?:\$\{\w+\}|\{\{)/.test(source) || isTemplate(source))
    return `it ${templateFault.message}; ${templateFault.hint}`
  return /^["']?[\u2018\u2019\u201c-\u201e]/.test(source)
    ? 'curly quotation marks are part of the value: write " or \''
    : undefined
}

/** `30 min`, `1h30m`, `2 weeks`. */
function durationOf(text: string): string | undefined {
  const parts = [...text.matchAll(/(\d+(?:\.\d+)?)\s*([a-z]+)\s*/gi)]
  if (parts.length === 0 || parts.map(([part]) => part).join('') !== text) return undefined
  const amounts = parts.map(([, amount, word = '']) => Number(amount) * msOf(word))
  return durationText(amounts.reduce((sum, amount) => sum + amount, 0))
}

function msOf(word: string): number {
  const lower = word.toLowerCase()
  if (/^(ms|msecs?|millis|milliseconds?)$/.test(lower)) return 1
  if (/^w(eeks?)?$/.test(lower)) return 7 * 86_400_000
  const [unit = ''] = /^(s(ecs?|econds?)?|m(ins?|inutes?)?|h(rs?|ours?)?|d(ays?)?)$/.exec(lower) ?? []
  // `M` means months in some programs.
  return word === 'M' ? NaN : (ownMember<number>(durations, unit.slice(0, 1)) ?? NaN)
}

/** `8k`, `8 KiB`, `1G`. */
function sizeOf(text: string): string | undefined {
  const [, amount, unit = ''] = /^(\d+)\s*(|[kmg])(?:i?b|bytes?)?$/i.exec(text) ?? []
  if (amount === undefined) return undefined
  return unit.toLowerCase() === 'g' ? `${Number(amount) * 1024}mb` : `${amount}${unit.toLowerCase()}b`
}

/** `10 per minute`, `10r/s`. */
function rateOf(text: string): string | undefined {
  const [, amount, word = ''] = /^(\d+)\s*(?:r|req|requests)?\s*(?:\/|per)\s*([a-z]+)$/i.exec(text) ?? []
  const unit = /^(s(ec(onds?)?)?|m(in(utes?)?)?|h(r|ours?)?)$/i.exec(word)?.[0]
  return unit && `${amount}/${unit.slice(0, 1).toLowerCase()}`
}
