import type { ProviderConfig } from '../config/model/provider.ts'
import { onlyValue } from './parts.ts'

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
