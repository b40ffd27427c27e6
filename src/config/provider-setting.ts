import { schemaText } from './document/schema-text.ts'
import type { ProviderConfig } from './model.ts'

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

interface Schema {
  readonly definitions: { readonly provider: { readonly properties: object } }
}

let known: ReadonlySet<string> | undefined

/** The names of the settings of a provider. */
function names(): ReadonlySet<string> {
  return (known ??= new Set(Object.keys((JSON.parse(schemaText()) as Schema).definitions.provider.properties)))
}
