import type { ErrorObject } from 'ajv'
import type { GatewaySettings } from '../settings.ts'
import { namesOf, type Report } from './report.ts'
import { reportOther, reportUnknown, subject } from './schema-diagnostics.ts'
import { schemaValidator } from './schema-validator.ts'

let compiled: ReturnType<typeof schemaValidator> | undefined

/**
 * Reports everything that does not match the schema. Removes invalid values and fills in defaults,
 * so that other checks can continue. Required settings may still be missing.
 */
export function validate(document: object, report: Report): GatewaySettings {
  const validate = (compiled ??= schemaValidator())
  validate(document)
  const errors = relevant(validate.errors ?? [])
  const unreported = errors.filter((error) => !report.isReported(subject(error)))
  for (const error of unreported.filter(({ keyword }) => keyword === 'additionalProperties'))
    reportUnknown(error, report)
  for (const error of unreported) reportOther(error, report)
  for (const at of errors.filter(({ keyword }) => keyword !== 'required' && keyword !== 'dependencies').map(subject))
    remove(document, at)
  // The second run fills in defaults for removed values.
  validate(document)
  return document as GatewaySettings
}

/** Ajv reports every alternative that it tried. This keeps one error for each place. */
function relevant(errors: readonly ErrorObject[]): ErrorObject[] {
  const seen = new Set<string>()
  return errors
    .filter((error) => !isAttempt(error) && !followsFromAnother(error, errors))
    .toSorted((a, b) => rank(a) - rank(b))
    .filter((error) => {
      const place = subject(error)
      if (seen.has(place)) return false
      seen.add(place)
      return true
    })
}

/**
 * Whether an error is about one alternative of a choice. The choice has an error of its own.
 */
function isAttempt({ keyword, schemaPath, propertyName }: ErrorObject): boolean {
  if (keyword === 'if' || (propertyName !== undefined && keyword !== 'propertyNames')) return true
  return /\/(oneOf|anyOf|contains|propertyNames)\//.test(schemaPath)
}

/**
 * Whether an error may only be the consequence of another one, such as an unknown setting that was
 * meant to be the missing one.
 */
function followsFromAnother(error: ErrorObject, errors: readonly ErrorObject[]): boolean {
  const { keyword, instancePath: at } = error
  // A missing setting is not reported if an unknown one was probably meant to be it.
  if (isChoice(keyword) && at !== '' && subject(error) !== at) return false
  if (isChoice(keyword))
    return errors.some((other) => other.keyword === 'additionalProperties' && other.instancePath === at)
  return keyword === 'contains' && errors.some((other) => other.instancePath.startsWith(`${at}/`) && !isAttempt(other))
}

/** Of several errors about one place, the most helpful has the lowest rank. */
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
  // The other entries keep their index, because their places are recorded by it.
  if (Array.isArray(container)) container[Number(last)] = undefined
  else delete container[last]
}
