import type { ProviderConfig } from '../config/model/provider.ts'
import { type StepUp, stepUpParameters } from '../core/step-up.ts'
import { onlyValue, type SignInParts } from './parts.ts'

/** The longest value of a parameter of `link_params`, in characters. A longer one is ignored. */
const longestLinkParam = 500

/** The parameters in the query of a sign-in that `link_params` of the provider allows. */
export function linkParamsOf(
  query: URLSearchParams,
  { linkParams }: Pick<ProviderConfig, 'linkParams'>,
): Readonly<Record<string, string>> {
  const found = linkParams.flatMap((name) => {
    const value = onlyValue(query, name)
    return value === undefined || value === '' || value.length > longestLinkParam ? [] : [[name, value] as const]
  })
  return Object.fromEntries(found)
}

/** The step-up in the query of a sign-in: only that of a rule, because any site may link here. */
export function stepUpOf(query: URLSearchParams, { stepUps }: Pick<SignInParts, 'stepUps'>): StepUp | undefined {
  const names = ['acr_values', 'max_age'] as const
  return stepUps.find((stepUp) => {
    const parameters = stepUpParameters(stepUp)
    return names.every((name) => onlyValue(query, name) === parameters[name])
  })
}
