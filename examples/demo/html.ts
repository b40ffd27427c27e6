/** Escaped markup that can be sent as it is. Create it with `html`. */
export class Markup {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

type Insertable = string | number | Markup | readonly Markup[] | undefined

/** A template literal that escapes inserted text and keeps inserted Markup. */
export function html(literals: TemplateStringsArray, ...inserted: readonly Insertable[]): Markup {
  return new Markup(literals.reduce((text, literal, index) => text + renderValue(inserted[index - 1]) + literal))
}

function renderValue(value: Insertable): string {
  if (value === undefined) return ''
  if (value instanceof Markup) return value.text
  if (typeof value === 'object') return value.map((each) => each.text).join('')
  return escapeHtml(String(value))
}

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

function escapeHtml(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => entities[character] ?? character)
}
