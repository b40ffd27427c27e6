import type { ErrorObject } from 'ajv'
import { mapInSteps, type Steps } from '../../core/steps.ts'
import type { GatewaySettings } from '../settings.ts'
import { readSettings } from './read-settings.ts'
import { containersOf, namesOf, type Report } from './report.ts'
import { reportOther, reportUnknown, subject } from './schema-diagnostics.ts'
import { compiledSchema } from './schema-validator.ts'

/**
 * Reports everything that does not match the schema, and removes it, so that other checks can
 * continue. Required settings may still be missing.
 */
export function* validate(document: object, report: Report): Steps<GatewaySettings> {
  const { schema, validate } = compiledSchema()
  validate(document)
  yield
  const errors = relevant(validate.errors ?? [])
  yield
  const unreported = errors.filter((error) => !report.at(subject(error)).isReported)
  const unknown = unreported.filter(({ keyword }) => keyword === 'additionalProperties')
  yield* mapInSteps(unknown, (error) => reportUnknown(error, report))
  yield* mapInSteps(unreported, (error) => reportOther(error, report))
  for (const at of errors.filter(({ keyword }) => keyword !== 'required' && keyword !== 'dependencies').map(subject))
    remove(document, at)
  yield
  return readSettings(document, schema, report)
}

/** Ajv reports every alternative that it tried. This keeps one error for each place. */
function relevant(errors: readonly ErrorObject[]): ErrorObject[] {
  const seen = new Set<string>()
  const withUnknown = new Set(
    errors.filter(({ keyword }) => keyword === 'additionalProperties').map(({ instancePath }) => instancePath),
  )
  const withInvalid = new Set(
    errors.filter((error) => !isAttempt(error)).flatMap(({ instancePath }) => containersOf(instancePath)),
  )
  return errors
    .filter((error) => !isAttempt(error) && !followsFromAnother(error, withUnknown, withInvalid))
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
 * meant to be the missing one. `withUnknown` and `withInvalid`: the maps and lists that contain an
 * unknown setting, or an error.
 */
function followsFromAnother(
  error: ErrorObject,
  withUnknown: ReadonlySet<string>,
  withInvalid: ReadonlySet<string>,
): boolean {
  const { keyword, instancePath: at } = error
  // A missing setting is not reported if an unknown one was probably meant to be it.
  if (isChoice(keyword) && at !== '' && subject(error) !== at) return false
  if (isChoice(keyword)) return withUnknown.has(at)
  return keyword === 'contains' && withInvalid.has(at)
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
