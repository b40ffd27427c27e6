import { compiledSchema } from './document/schema-validator.ts'
import type { ProviderConfig } from './model/provider.ts'

/**
 * Advice about a provider in the names of its own settings: with several providers,
 * `provider.scopes` becomes `providers.staff.scopes`. Names of log messages stay as they are.
 */
export function inSettingsOf({ setting }: Pick<ProviderConfig, 'setting'>, advice: string): string {
  if (setting === 'provider') return advice
  return advice.replace(/\bprovider\.([a-z_]+|\*)/g, (text, name: string) =>
    name === '*' || names().has(name) ? `${setting}.${name}` : text,
  )
}

let known: ReadonlySet<string> | undefined

/** The names of the settings of a provider. */
function names(): ReadonlySet<string> {
  return (known ??= new Set(Object.keys(compiledSchema().schema.definitions?.['provider']?.properties ?? {})))
}
