import { type StepUp, stepUpParameters } from '../core/step-up.ts'
import { onlyValue, type SignInParts } from './parts.ts'

/**
 * The step-up in the query of a sign-in. Only that of a rule has an effect, because links on other
 * sites may have any query.
 */
export function stepUpOf(query: URLSearchParams, { stepUps }: Pick<SignInParts, 'stepUps'>): StepUp | undefined {
  const names = ['acr_values', 'max_age'] as const
  return stepUps.find((stepUp) => {
    const parameters = stepUpParameters(stepUp)
    return names.every((name) => onlyValue(query, name) === parameters[name])
  })
}
