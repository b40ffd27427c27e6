/** A start tag in HTML, at the character `from`, up to `to`. */
export interface MarkupElement {
  /** In lower case. */
  readonly name: string
  readonly from: number
  readonly to: number
  /** The attributes that have a value. */
  readonly attributes: readonly MarkupAttribute[]
  /** The raw text in a `<style>` or `<script>`. */
  readonly content: { readonly from: number; readonly to: number } | undefined
}

export interface MarkupAttribute {
  /** In lower case. */
  readonly name: string
  readonly from: number
  /** The value with its quotes. */
  readonly value: { readonly from: number; readonly to: number; readonly isQuoted: boolean }
}

const tag = /<!--(?:-?>|[^]*?(?:--!?>|$))|<([a-z][^\s/>]*)((?:[^>"']|"[^"]*"|'[^']*')*)>?/gi
const attribute = /([^\s"'<>/=]+)\s*=\s*("[^"]*"|'[^']*'|[^\s"'>][^\s>]*)/g

/**
 * The start tags of HTML as browsers find them (HTML §13.2.5). Deliberately obscure markup may be
 * read differently.
 */
export function* elementsOf(html: string): Generator<MarkupElement> {
  let at = 0
  for (;;) {
    tag.lastIndex = at
    const found = tag.exec(html)
    if (found === null) return
    at = tag.lastIndex
    const [whole, written, attributes = ''] = found
    if (written === undefined) continue
    const from = found.index
    const to = from + whole.length
    const name = written.toLowerCase()
    const content = name === 'style' || name === 'script' ? { from: to, to: endOf(name, html, to) } : undefined
    if (content !== undefined) at = content.to
    yield { name, from, to, content, attributes: [...attributesOf(attributes, from + 1 + written.length)] }
  }
}

function* attributesOf(text: string, offset: number): Generator<MarkupAttribute> {
  for (const { index, 0: whole, 1: name = '', 2: value = '' } of text.matchAll(attribute)) {
    const from = offset + index
    const to = from + whole.length
    yield { name: name.toLowerCase(), from, value: { from: to - value.length, to, isQuoted: /^["']/.test(value) } }
  }
}

function endOf(name: string, html: string, from: number): number {
  const end = new RegExp(`</${name}[\\s/>]`, 'gi')
  end.lastIndex = from
  return end.exec(html)?.index ?? html.length
}
