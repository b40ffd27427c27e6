import { ownMember } from '../core/json.ts'

/** What a value of `end_session_params` may contain, in braces. */
export const endSessionPlaceholders = ['client_id', 'id_token_hint', 'post_logout_redirect_uri', 'state'] as const

const pattern = /\{([^{}]*)\}/g

/** The names of the placeholders in a value. */
export function placeholdersIn(value: string): string[] {
  return [...value.matchAll(pattern)].map(([, name = '']) => name)
}

/** The value with its placeholders replaced; `undefined` when one of them has no value. */
export function fillPlaceholders(value: string, values: Readonly<Partial<Record<string, string>>>): string | undefined {
  if (placeholdersIn(value).some((name) => ownMember(values, name) === undefined)) return undefined
  return value.replace(pattern, (_, name: string) => ownMember(values, name) ?? '')
}
