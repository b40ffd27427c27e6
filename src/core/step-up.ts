/**
 * How strong and how recent the authentication of a person has to be. The members have the names of
 * the parameters of an authorization request (OpenID Connect Core §3.1.2.1).
 */
export interface StepUp {
  /** The `acr` of the ID Token must be one of these. Absent: any, or none. */
  readonly acr_values?: readonly string[]
  /** The longest time since the authentication, in seconds. Absent: any. */
  readonly max_age?: number
}

/** How a person authenticated, as the ID Token of the sign-in says (OpenID Connect Core §2). */
export interface Authentication {
  readonly acr?: string
  /** In ms since the epoch. */
  readonly auth_time?: number
}

/**
 * Why an authentication is not sufficient; `undefined` when it is. Times are in ms.
 * @param tolerance how far the clock of the provider may differ
 */
export function insufficiency(
  { acr_values, max_age }: StepUp,
  { acr, auth_time }: Authentication,
  { now, tolerance }: { readonly now: number; readonly tolerance: number },
): string | undefined {
  if (acr_values !== undefined && (acr === undefined || !acr_values.includes(acr)))
    return `acr: is not ${acr_values.join(' or ')}`
  if (max_age === undefined) return undefined
  if (auth_time === undefined) return 'auth_time: is unknown'
  return now - auth_time > max_age * 1000 + tolerance
    ? `auth_time: the authentication was more than ${max_age} s ago`
    : undefined
}

/** The parameters of an authorization request, and of the sign-in endpoint. */
export function stepUpParameters({ acr_values, max_age }: StepUp = {}): Readonly<Record<string, string>> {
  return {
    ...(acr_values && { acr_values: acr_values.join(' ') }),
    ...(max_age !== undefined && { max_age: String(max_age) }),
  }
}
