/** A person who can sign in at the demo provider with a click and without a password. */
export interface DemoPerson {
  readonly sub: string
  readonly email: string
  readonly given_name: string
  readonly family_name: string
  readonly fields: {
    readonly costCentre: string
    readonly employeeNumber: string
    readonly groups: readonly string[]
  }
}

/**
 * The claim in UserInfo that contains the custom fields. Its name is a URL, as for the private
 * claims of real providers.
 */
export const fieldsClaim = 'https://id.example.com/claims/fields'

export const demoPeople: readonly DemoPerson[] = [
  {
    sub: 'jane',
    email: 'jane.doe@example.com',
    given_name: 'Jane',
    family_name: 'Doe',
    fields: { costCentre: 'CC-4711', employeeNumber: '100234', groups: ['admins', 'finance'] },
  },
  {
    // The name and a group are not ASCII, to show how headers encode them.
    sub: 'zoe',
    email: 'zoe.mueller@example.com',
    given_name: 'Zoë',
    family_name: 'Müller',
    fields: { costCentre: 'CC-1200', employeeNumber: '100871', groups: ['sales', 'Vertrieb Süd'] },
  },
  {
    sub: 'samir',
    email: 'samir.haddad@example.com',
    given_name: 'Samir',
    family_name: 'Haddad',
    fields: { costCentre: 'CC-3050', employeeNumber: '101415', groups: ['warehouse'] },
  },
  {
    sub: 'noa',
    email: 'noa.levi@example.com',
    given_name: 'Noa',
    family_name: 'Levi',
    fields: { costCentre: 'CC-3050', employeeNumber: '102003', groups: [] },
  },
]

export function fullName(person: DemoPerson): string {
  return `${person.given_name} ${person.family_name}`
}
