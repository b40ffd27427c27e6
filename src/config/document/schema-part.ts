import { ownMember } from '../../core/json.ts'
import type { Formats } from './formats.ts'

/** Quantities, each with the ending of the names of its fields. */
const units = { duration: 'Ms', size: 'Bytes', size_per_second: 'BytesPerSecond', rate: '' } as const

/** The keywords of a part of the configuration schema that the gateway reads. */
export interface SchemaPart {
  readonly $ref?: string
  readonly definitions?: Readonly<Record<string, SchemaPart>>
  readonly properties?: Readonly<Record<string, SchemaPart>>
  readonly additionalProperties?: SchemaPart | boolean
  readonly items?: SchemaPart
  readonly then?: SchemaPart
  readonly default?: unknown
  readonly examples?: readonly unknown[]
  readonly pattern?: string
  /** The message in place of the usual one. */
  readonly errorMessage?: string
  /** Read in place of a missing setting that has no default, so that the rest can be checked. */
  readonly standIn?: object
  /** What the value means: it is read as one of `formats`. */
  readonly format?: keyof Formats
  /** The text means a number, or a rate. `atLeast` and `atMost` are its range. */
  readonly quantity?: keyof typeof units
  readonly atLeast?: string
  readonly atMost?: string
  /**
   * A value that is no map means a map: with the value in the setting of this name, or in the
   * second one if it is a text with a brace; or this map.
   */
  readonly short?: string | readonly [name: string, ofTemplates: string] | object
  /** The first version of Gatehouse with this setting. Absent: 0.1.0. */
  readonly since?: string
  /**
   * What to write in place of a setting that this map does not have: those of other gateways and
   * web frameworks, and likely guesses. The names are patterns, in lower case with underscores.
   */
  readonly foreign?: Readonly<Record<string, string>>
  /** The same for all maps. The patterns match pointers. */
  readonly foreignAnywhere?: Readonly<Record<string, string>>
  /** What to write in place of values that match a pattern, in the same form. */
  readonly foreignValues?: Readonly<Record<string, string>>
  /**
   * The setting is an error beside others that meet a condition, or without them; or it is needed
   * beside them.
   */
  readonly notWith?: Relations
  readonly onlyWith?: Relations
  readonly neededWith?: Relations
  /** What several relations say. */
  readonly reasons?: Readonly<Record<string, Reason>>
  /** No program whose configuration `gatehouse import` reads has such a setting. */
  readonly onlyHere?: true
  /** The setting is a parameter of a specification, so its name is not changed to camelCase. */
  readonly keepsName?: true
}

/**
 * What is wrong, and what to do. `%name%` is the value of a setting of the map, and `%other%` the
 * condition.
 */
type Reason = readonly string[]

/**
 * Condition → reason, or the name of one of `reasons`.
 *
 * - `NAME`: the setting has a value other than `false`; `NAME: PATTERN`: one that matches, where
 *   `absent` is no value. Several with ` and `, then with ` or `.
 * - A name begins in the same map. `cookie.domain` is below it; each `^` before the name is the map
 *   around.
 */
export type Relations = Readonly<Record<string, Reason | string>>

/** Follows the `$ref` of a part. Keywords beside the `$ref` replace those of its target. */
export function resolved(part: SchemaPart, { definitions = {} }: SchemaPart): SchemaPart {
  const { $ref } = part
  return $ref === undefined ? part : { ...definitions[$ref.replace('#/definitions/', '')], ...part }
}

/** The part of the schema for the value that these names and indexes lead to. */
export function partAt(names: readonly string[], schema: SchemaPart): SchemaPart | undefined {
  let part: SchemaPart | undefined = schema
  for (const name of names) {
    const { properties, additionalProperties, items }: SchemaPart = part
    const members = typeof additionalProperties === 'object' ? additionalProperties : items
    const next: SchemaPart | undefined = ownMember(properties ?? {}, name) ?? members
    if (next === undefined) return undefined
    part = resolved(next, schema)
  }
  return part
}

/**
 * The name of a setting in the code: `drain_timeout` → `drainTimeoutMs`; `ca_file` → `ca`, which is
 * the content of the file.
 */
export function fieldName(setting: string, { quantity, format, keepsName }: SchemaPart): string {
  if (keepsName === true) return setting
  const name = setting
    .replace(format === 'authorities' ? /_file$/ : '', '')
    .replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())
  const unit = quantity === undefined ? '' : units[quantity]
  return name.endsWith(unit) ? name : `${name}${unit}`
}
