/**
 * The people who sign in: one for each sign-in. Each has ten claims with values that no other
 * person has.
 */
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

export function subOf(person: number): string {
  return `person-${person}`
}

export function personOf(sub: string): number {
  return Number(sub.slice('person-'.length))
}

/** The UserInfo claims of a person, who is identified by a number. */
function claimsOf(person: number): Readonly<Record<ClaimName, string | readonly string[]>> {
  return {
    sub: subOf(person),
    name: `Jane Q. Doe ${person}`,
    given_name: `Jane ${person}`,
    family_name: `Doe ${person}`,
    preferred_username: `jane.doe.${person}`,
    email: `jane.doe.${person}@example.com`,
    employee_number: `E-${person}-4711`,
    department: `Department ${person}`,
    cost_centre: `CC-${person}`,
    groups: ['staff', 'finance', `team-${person}`],
  }
}

/** The name of a claim beyond the ten. */
export function furtherClaimName(n: number): string {
  return `claim_${n}`
}

/** The first `count` claims of a person: the ten, and further ones. Always with `sub`. */
export function manyClaimsOf(person: number, count: number): Readonly<Record<string, string | readonly string[]>> {
  const further = Array.from({ length: Math.max(0, count - claimNames.length) }, (_, at) => {
    const name = furtherClaimName(claimNames.length + at)
    return [name, `${name} of ${person}`] as const
  })
  return Object.fromEntries([...Object.entries(claimsOf(person)).slice(0, count), ...further])
}

const rendered = new Map<number, readonly string[]>()

/** The same claims as header values. Lists are joined with commas. */
export function claimValues(person: number): readonly string[] {
  const known = rendered.get(person)
  if (known) return known
  const values = Object.values(claimsOf(person)).map(String)
  rendered.set(person, values)
  return values
}
