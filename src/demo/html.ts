/** Markup that may be sent as it is: `html` makes it, and escapes what it is given. */
export class Markup {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

type Insertable = string | number | Markup | readonly Markup[] | undefined

/** A template literal whose insertions are text, except for Markup. */
export function html(literals: TemplateStringsArray, ...inserted: readonly Insertable[]): Markup {
  return new Markup(literals.reduce((text, literal, index) => text + rendered(inserted[index - 1]) + literal))
}

function rendered(value: Insertable): string {
  if (value === undefined) return ''
  if (value instanceof Markup) return value.text
  if (typeof value === 'object') return value.map((each) => each.text).join('')
  return escaped(String(value))
}

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

function escaped(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => entities[character] ?? character)
}
