import { requirementsOf } from '../config/claims-in-use.ts'
import { conditionsOf } from '../config/model/requirement.ts'
import type { RuleConfig } from '../config/model/rule.ts'
import type { UpstreamConfig } from '../config/model/upstream.ts'
import { placesOf } from '../config/target-addresses.ts'
import { fieldsOf, isRemovableField } from '../core/header-fields.ts'

/**
 * The form in which names are compared. Some upstreams read `X_User`, `X.User` or `X--User` as
 * `X-User`.
 */
export function canonicalName(name: string): string {
  const lower = name.toLowerCase()
  return /[^a-z\d-]|--|^-|-$/.test(lower) ? lower.replaceAll(/[^a-z\d]+/g, '-').replaceAll(/^-|-$/g, '') : lower
}

type Setting = Pick<UpstreamConfig, 'targets' | 'headers' | 'removedFields' | 'rules' | 'signedIdentity'> &
  Partial<Pick<UpstreamConfig, 'authorizeWith' | 'logout'>>

/** The names of fields that an upstream never receives from a client, in canonical form. */
export class ReservedNames {
  /** The names that the gateway sets. */
  readonly own: ReadonlySet<string>
  readonly #removed: ReadonlySet<string>
  readonly #prefixes: readonly string[]

  /** @param removed names, and beginnings of names with `*` at their end */
  constructor(own: readonly string[], removed: readonly string[]) {
    this.own = new Set(own)
    this.#removed = new Set(removed.filter((text) => !text.endsWith('*')).map(canonicalName))
    this.#prefixes = removed
      .filter((text) => text.endsWith('*'))
      .map((text) => text.slice(0, -1).toLowerCase().replaceAll('_', '-'))
  }

  /** @param name in canonical form */
  has(name: string): boolean {
    if (this.own.has(name) || this.#removed.has(name)) return true
    // Without a field such as Content-Length, the request would be another one. In canonical form,
    // OIDC- is OIDC.
    return this.#prefixes.some((prefix) => `${name}-`.startsWith(prefix)) && isRemovableField(name)
  }
}

/**
 * The names of the headers that an upstream never receives from a client. The configuration sets or
 * removes them, or they contain the signed identity. If decisions depend on the method, the headers
 * that override it are included. The headers of other `upstreams` with the same application are
 * included, because it trusts them on every path. Their `Authorization` is not: one path may accept
 * a token of the client while another gets the token of the gateway.
 */
export function reservedNames(upstream: Setting, upstreams: readonly Setting[]): ReservedNames {
  const places = placesOf(upstream)
  const others = upstreams.filter((other) => !placesOf(other).isDisjointFrom(places))
  const removed = others.flatMap(({ removedFields }) => removedFields)
  const isTheirs = (name: string) => canonicalName(name) !== 'authorization'
  return new ReservedNames(
    [...namesOf(upstream), ...others.flatMap(namesOf).filter(isTheirs)],
    [...upstream.removedFields, ...removed.filter(isTheirs)],
  )
}

function namesOf(setting: Setting): readonly string[] {
  const { headers, rules, signedIdentity } = setting
  const all = [...headers, ...rules.flatMap((rule) => rule.headers ?? [])].map(({ name }) => name)
  const signed = signedIdentity === undefined ? [] : [signedIdentity.header]
  const names = [...fieldsOf('signed_identity'), ...signed, ...all].map(canonicalName)
  return dependsOnMethod(setting) ? [...names, ...fieldsOf('method_override')] : names
}

/** Whether any decision about a request depends on its method. */
function dependsOnMethod({ rules, authorizeWith, logout }: Setting): boolean {
  // The policy decision point gets the method.
  if (authorizeWith !== undefined || logout?.paths.some(({ methods }) => methods !== undefined) === true) return true
  return rules.some((rule) => rule.methods !== undefined || hasMethods(rule))
}

function hasMethods(rule: RuleConfig): boolean {
  return requirementsOf(rule)
    .flatMap(conditionsOf)
    .some(({ kind }) => kind === 'methods')
}
