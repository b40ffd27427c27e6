/** Who signs in: as many as there are sign-ins, each with ten claims that are different from everybody else's. */
export const claimNames = [
  'sub',
  'name',
  'given_name',
  'family_name',
  'preferred_username',
  'email',
  'employee_number',
  'department',
  'cost_centre',
  'groups',
] as const

export type ClaimName = (typeof claimNames)[number]

/** What userinfo says about `person-N`. */
export function claimsOf(sub: string): Readonly<Record<ClaimName, string | readonly string[]>> {
  const number = sub.slice('person-'.length)
  return {
    sub,
    name: `Jane Q. Doe ${number}`,
    given_name: `Jane ${number}`,
    family_name: `Doe ${number}`,
    preferred_username: `jane.doe.${number}`,
    email: `jane.doe.${number}@example.com`,
    employee_number: `E-${number}-4711`,
    department: `Department ${number}`,
    cost_centre: `CC-${number}`,
    groups: ['staff', 'finance', `team-${number}`],
  }
}

const rendered = new Map<string, readonly string[]>()

/** The same as header values, lists joined by commas. */
export function claimValues(sub: string): readonly string[] {
  const known = rendered.get(sub)
  if (known) return known
  const values = Object.values(claimsOf(sub)).map(String)
  rendered.set(sub, values)
  return values
}
