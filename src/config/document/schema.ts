import { readFileSync } from 'node:fs'
import { Ajv, type AnySchemaObject, type ErrorObject, type ValidateFunction } from 'ajv'
import type { GatewaySettings } from '../settings.ts'
import { namesOf, type Report } from './report.ts'
import { reportOther, reportUnknown, subject } from './schema-diagnostics.ts'

// The path is the same from src/config/document and from dist/config/document.
const schemaFile = new URL('../../../schemas/gateway.schema.json', import.meta.url)

/** The schema as it is delivered: JSON Schema, draft-07. */
export function schemaText(): string {
  return readFileSync(schemaFile, 'utf8')
}

let compiled: { readonly schema: AnySchemaObject; readonly validate: ValidateFunction } | undefined

function gatewaySchema() {
  if (compiled) return compiled
  const schema = JSON.parse(schemaText()) as AnySchemaObject
  // Compiling takes a third of the time this way. A test checks the schema itself, with everything
  // that is left out here.
  const quickly = { code: { optimize: false }, inlineRefs: false, validateSchema: false, meta: false, strict: false }
  const ajv = new Ajv({ ...quickly, allErrors: true, verbose: true, useDefaults: true })
  // The same words that editors show: the YAML and JSON language servers read them too.
  ajv.addVocabulary(['errorMessage'])
  compiled = { schema, validate: ajv.compile(schema) }
  return compiled
}

/**
 * Reports whatever does not fit the schema. What is left of the document then fits it, apart from
 * required settings that are missing, and has all defaults filled in, so that the other checks can
 * still be made.
 */
export function validate(document: object, report: Report): GatewaySettings {
  const { schema, validate } = gatewaySchema()
  validate(document)
  const errors = relevant(validate.errors ?? [])
  const untold = errors.filter((error) => !report.isTold(subject(error)))
  for (const error of untold.filter(({ keyword }) => keyword === 'additionalProperties'))
    reportUnknown(error, schema, report)
  for (const error of untold) reportOther(error, report)
  for (const at of errors.filter(({ keyword }) => keyword !== 'required' && keyword !== 'dependencies').map(subject))
    remove(document, at)
  // A second time for the defaults of what was removed.
  validate(document)
  return document as GatewaySettings
}

/** Ajv tells everything that it tried; people want to know what to mend, once. */
function relevant(errors: readonly ErrorObject[]): ErrorObject[] {
  const told = new Set<string>()
  return errors
    .filter((error) => !isAttempt(error) && !followsFromAnother(error, errors))
    .toSorted((a, b) => rank(a) - rank(b))
    .filter((error) => {
      const place = subject(error)
      if (told.has(place)) return false
      told.add(place)
      return true
    })
}

/**
 * What stands within a choice says why one of the ways was not taken; what has failed is the
 * choice.
 */
function isAttempt({ keyword, schemaPath, propertyName }: ErrorObject): boolean {
  if (keyword === 'if' || (propertyName !== undefined && keyword !== 'propertyNames')) return true
  return /\/(oneOf|anyOf|contains|propertyNames)\//.test(schemaPath)
}

/**
 * With a setting that is not known, or an entry that is wrong, it cannot be said that the one that
 * is asked for is missing.
 */
function followsFromAnother({ keyword, instancePath: at }: ErrorObject, errors: readonly ErrorObject[]): boolean {
  if (isChoice(keyword))
    return errors.some((other) => other.keyword === 'additionalProperties' && other.instancePath === at)
  return keyword === 'contains' && errors.some((other) => other.instancePath.startsWith(`${at}/`) && !isAttempt(other))
}

/** The most telling of several errors about one place comes first. */
function rank({ keyword }: ErrorObject): number {
  return keyword === 'type' ? 0 : isChoice(keyword) ? 2 : 1
}

function isChoice(keyword: string): boolean {
  return keyword === 'oneOf' || keyword === 'anyOf'
}

function remove(document: object, at: string): void {
  const names = namesOf(at)
  const last = names.pop()
  if (last === undefined) return
  let container = document as Record<string, unknown>
  for (const name of names) {
    const next = container[name]
    if (typeof next !== 'object' || next === null) return
    container = next as Record<string, unknown>
  }
  // The entries after it keep their numbers, by which their places are known.
  if (Array.isArray(container)) container[Number(last)] = undefined
  else delete container[last]
}
