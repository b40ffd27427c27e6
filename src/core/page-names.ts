/** A next step that a page can offer. */
export type PageAction =
  'home' | 'sign_in' | 'other_account' | 'retry' | 'sign_out' | 'stay_signed_in' | 'right_address'

/** The pages that a template can replace, with their actions. */
export const pageActions = {
  'bad-request': ['home'],
  'sign-in-required': ['sign_in'],
  'wrong-address': ['right_address'],
  forbidden: ['other_account'],
  'not-found': ['home'],
  'too-many-requests': ['retry'],
  unavailable: ['retry'],
  'sign-in-failed': ['retry', 'other_account'],
  'sign-out': ['sign_out', 'stay_signed_in'],
  'signed-out': ['sign_in'],
} as const satisfies Readonly<Record<string, readonly PageAction[]>>

/** Actions that a template may omit, because the browser's Back does the same. */
export const optionalActions: ReadonlySet<PageAction> = new Set<PageAction>(['stay_signed_in'])

export type PageName = keyof typeof pageActions

export const pageNames = Object.keys(pageActions) as readonly PageName[]

/** Placeholders that have a value on each page. */
const everywhere = ['lang', 'dir', 'title', 'text', 'status', 'request_id', 'request_label'] as const

/** Placeholders that have a value when the configuration sets it. */
const configured = ['name', 'logo_url', 'support_label', 'support_text', 'support_url'] as const

/** Placeholders of one page. Without a name of the rule they are empty. */
const ofPage: Readonly<Partial<Record<PageName, readonly ('rule_name' | 'rule_label')[]>>> = {
  forbidden: ['rule_label', 'rule_name'],
}

export type ConfiguredPlaceholder = (typeof configured)[number]

export type Placeholder =
  | (typeof everywhere)[number]
  | 'rule_name'
  | 'rule_label'
  | ConfiguredPlaceholder
  | `${PageAction}_url`
  | `${PageAction}_label`

/** The placeholders that the template of a page may use. */
export function placeholdersOf(page: PageName): readonly Placeholder[] {
  const actions = pageActions[page].flatMap((action) => [`${action}_url`, `${action}_label`] as const)
  return [...everywhere, ...configured, ...actions, ...(ofPage[page] ?? [])]
}

/** A parsed template: literal HTML and placeholders, whose values are escaped. */
export interface PageTemplate {
  readonly parts: readonly (string | { readonly placeholder: Placeholder })[]
  /** The contents of its `<style>` elements, whose hashes the Content Security Policy has. */
  readonly styles: readonly string[]
}
